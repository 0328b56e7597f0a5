"""Everything that can go wrong, as a tree. Each message says what was given, what would be right and what to type next.

IdiographError
├── InputError      a file, text or folder that we were given is not what it should be
│   └── TooShort    a text with too little in it to say anything
├── SpecError       a "name:arg" string or recipe key that we do not know
├── ArtifactError   a folder of ours that is missing, unfinished, in use or made from something else
├── ModelError      a model that cannot be opened, or is not the one that made the index
├── MissingLibrary  a library that this work needs, and that an extra of the package brings
└── ServiceError    a server that does not answer as it should
"""


class IdiographError(Exception):
    """Base of every error that a user can cause and mend; the command line prints it on one line."""


class InputError(IdiographError):
    """A file, text or folder that we were given is not what it should be."""


class TooShort(InputError):
    """A text has too few words to carry a style."""


class SpecError(IdiographError):
    """A choice that we do not know."""


class ArtifactError(IdiographError):
    """A folder of ours that is missing, unfinished, in use or made from something else."""


class ModelError(IdiographError):
    """A model that cannot be opened, or is not the one that made the index."""


class MissingLibrary(IdiographError):
    """A library that this work needs, and that an extra of the package brings."""


class ServiceError(IdiographError):
    """A server that does not answer as it should."""
