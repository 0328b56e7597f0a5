"""The public names, sorted, and each of them real."""

import idiograph


def test_public_names_are_sorted_and_resolve():
    assert idiograph.__all__ == sorted(idiograph.__all__)
    assert all(getattr(idiograph, name) is not None for name in idiograph.__all__)


def test_public_names_are_these():
    assert set(idiograph.__all__) == {
        *("Author", "Corpus", "Document", "IdiographError", "Index", "Style", "TextLibrary"),
        *("Attribution", "CrossValidation", "Explanation", "Reasons", "Verdict"),
        *("attribute", "crossvalidate", "explain", "load", "verify"),
    }


def test_a_public_name_is_not_hidden_by_a_module_of_the_same_name():
    import idiograph.answer.explain
    import idiograph.loading

    assert callable(idiograph.load)
    assert callable(idiograph.explain)


def test_dir_lists_the_public_names_alone():
    assert dir(idiograph) == sorted([*idiograph.__all__, "__version__"])


def test_the_package_says_that_it_has_types():
    from importlib.resources import files

    assert (files("idiograph") / "py.typed").is_file()


def test_an_unknown_name_is_an_attribute_error():
    try:
        idiograph.nothing  # noqa: B018
    except AttributeError as error:
        assert "has no attribute 'nothing'" in str(error)
    else:
        raise AssertionError("an unknown name was found")
