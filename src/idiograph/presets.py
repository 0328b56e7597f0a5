"""What each preset changes of the defaults in `idiograph.recipe`, which are `sound`."""

from typing import Any

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "sound": {},
    "paper": {
        "harvest": {"licence": "any", "roles": ("aut",), "files": False},
        "download": {"licence": "any"},
        "corpus": {"citations": "keep", "language": "depositor", "duplicates": "keep"},
        "mine": {
            "label": "set",
            "identity": "ids",
            "field_codes": "auto",
            "fields": "exact",
            "containers": "any",
            "detector": False,
            "near_duplicates": "keep",
            "split": "triplet",
            "fractions": (0.98, 0.01, 0.01),
            "per_document": 100,
            "abbreviations": "published",
            "short_documents": "keep",
            "spans_per_document": 100,
            "repeats": True,
        },
        "train": {
            "backbone": "answerdotai/ModernBERT-base",
            "head": "mlp",
            "boundaries": "reg2",
            "apart": False,
            "reading": "published",
            "tau": 0.5,
            "score": "maxsim",
            "mask_false_negatives": False,
            "batch": 32,
            "accumulate": 2,
            "lr": 3e-5,
            "head_lr": "auto",
            "weight_decay": 0.1,
            "decay_all": True,
            "clip": 0.0,
            "precision": "fp16",
            "validate_every": "log",
        },
        "style": {"score": "maxsim", "keep": "words", "beyond": "cut"},
        "evaluate": {
            "own_document": "keep",
            "measures": ("R@20", "R@100", "nDCG@20", "nDCG@100", "Hit@1", "RR"),
            "reading": "published",
        },
        "pan": {"unknowns": "last", "negatives": "one", "seed": 42},
    },
}
