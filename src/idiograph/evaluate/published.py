"""The numbers that the paper reports, by the table that they stand in. Facts to compare with; no protocol is implied.

HALvest-Contrastive: Retrieval-Like Authorship Attribution with Patch-level Late Interaction (2026), ModernBERT-base.
"""

MEASURES = ("R@20", "R@100", "nDCG@20", "nDCG@100")

# Table "HALvest-Contrastive base-k: primary retrieval metrics"; the order is that of MEASURES.
RETRIEVAL: dict[int, dict[str, tuple[float, float, float, float]]] = {
    2: {
        "whole": (0.060, 0.173, 0.032, 0.058),
        "whole as ngram:1": (0.073, 0.190, 0.041, 0.067),
        "ngram:1": (0.280, 0.457, 0.202, 0.243),
        "ngram:2": (0.284, 0.465, 0.200, 0.242),
        "ngram:3": (0.281, 0.468, 0.196, 0.239),
        "ngram:4": (0.265, 0.451, 0.181, 0.224),
        "ngram:5": (0.266, 0.457, 0.180, 0.224),
        "learned:3": (0.258, 0.450, 0.171, 0.215),
    },
    4: {
        "whole": (0.121, 0.294, 0.063, 0.101),
        "whole as ngram:1": (0.147, 0.328, 0.082, 0.121),
        "ngram:1": (0.485, 0.678, 0.364, 0.408),
        "ngram:2": (0.497, 0.700, 0.365, 0.411),
        "ngram:3": (0.495, 0.699, 0.361, 0.407),
        "ngram:4": (0.472, 0.687, 0.339, 0.387),
        "ngram:5": (0.478, 0.693, 0.341, 0.390),
        "word": (0.482, 0.680, 0.358, 0.403),
        "learned:3": (0.452, 0.670, 0.314, 0.363),
    },
    6: {
        "whole": (0.163, 0.377, 0.087, 0.132),
        "whole as ngram:1": (0.193, 0.420, 0.107, 0.156),
        "ngram:1": (0.603, 0.779, 0.464, 0.503),
        "ngram:2": (0.616, 0.797, 0.466, 0.507),
        "ngram:3": (0.617, 0.803, 0.464, 0.506),
        "ngram:4": (0.593, 0.788, 0.442, 0.485),
        "ngram:5": (0.604, 0.797, 0.443, 0.486),
        "word": (0.601, 0.776, 0.457, 0.496),
    },
    8: {
        "whole": (0.211, 0.450, 0.114, 0.164),
        "whole as ngram:1": (0.247, 0.494, 0.143, 0.195),
        "ngram:1": (0.690, 0.847, 0.537, 0.571),
        "ngram:2": (0.706, 0.862, 0.545, 0.580),
        "ngram:3": (0.713, 0.865, 0.545, 0.579),
        "ngram:4": (0.688, 0.855, 0.521, 0.558),
        "ngram:5": (0.699, 0.863, 0.523, 0.560),
        "word": (0.688, 0.849, 0.534, 0.570),
        "learned:3": (0.659, 0.838, 0.483, 0.522),
    },
    10: {
        "whole": (0.246, 0.499, 0.130, 0.182),
        "whole as ngram:1": (0.287, 0.547, 0.163, 0.217),
        "ngram:1": (0.740, 0.880, 0.586, 0.616),
        "ngram:2": (0.760, 0.897, 0.595, 0.625),
        "ngram:3": (0.765, 0.901, 0.594, 0.624),
        "ngram:4": (0.742, 0.892, 0.571, 0.604),
        "ngram:5": (0.754, 0.899, 0.576, 0.608),
        "word": (0.742, 0.887, 0.580, 0.612),
        "learned:3": (0.714, 0.872, 0.534, 0.572),
    },
}

POOL = 28_600  # spans that base-4 is searched in: all positives and negatives of its 14.3k test triplets

# Table "Accuracy (%) on the unrestricted and base test configurations": (model, rule, sentences).
DECOUPLING: dict[tuple[str, str, int], float] = {
    ("BM25", "unrestricted", 2): 68.15,
    ("BM25", "base", 2): 60.24,
    ("BM25", "unrestricted", 4): 79.26,
    ("BM25", "base", 4): 68.36,
    ("BM25", "unrestricted", 6): 85.03,
    ("BM25", "base", 6): 73.72,
    ("BM25", "unrestricted", 8): 89.09,
    ("BM25", "base", 8): 78.21,
    ("ict", "unrestricted", 2): 86.61,
    ("ict", "base", 2): 79.72,
    ("ict", "unrestricted", 4): 91.60,
    ("ict", "base", 4): 85.11,
    ("ict", "unrestricted", 6): 93.77,
    ("ict", "base", 6): 88.51,
    ("ict", "unrestricted", 8): 94.41,
    ("ict", "base", 8): 88.07,
    ("unrestricted", "base", 2): 80.73,
    ("unrestricted", "base", 4): 87.03,
    ("unrestricted", "base", 6): 88.44,
    ("unrestricted", "base", 8): 89.91,
    ("base", "base", 2): 82.33,
    ("base", "base", 4): 88.07,
    ("base", "base", 6): 90.15,
    ("base", "base", 8): 90.83,
}

# Table "Alignment and uniformity per model".
GEOMETRY: dict[str, tuple[float, float]] = {
    "untrained": (0.069, -0.171),
    "whole": (0.154, -2.000),
    "ngram:1": (0.091, -0.331),
    "word": (0.098, -0.378),
    "ngram:2": (0.201, -0.717),
    "ngram:3": (0.320, -1.150),
    "ngram:4": (0.438, -1.565),
    "ngram:5": (0.519, -1.909),
}

# Table "Zero-shot triplet accuracy on PAN19".
PAN19: dict[str, float] = {
    "whole": 0.520,
    "ngram:1": 0.719,
    "word": 0.715,
    "ngram:5": 0.704,
    "ngram:3": 0.724,
    "ngram:2": 0.740,
    "ngram:4": 0.740,
    "E5": 0.628,
}

# Table "Empirical fit of n*": tokens of a span, and the best patch size.
PATCH_SIZES: dict[str, tuple[float, int]] = {
    "base-2": (69.5, 1),
    "base-4": (133.2, 2),
    "base-6": (201.4, 3),
    "base-8": (266.2, 3),
    "base-10": (327.6, 3),
    "PAN19": (512.0, 4),
}
COEFFICIENT = 0.18

# Section "AA is not semantic retrieval".
MEANING: dict[str, dict[str, float]] = {  # Table "E5 zero-shot metrics": dense and late interaction
    "whole": {
        "R@20": 0.167, "R@100": 0.269, "nDCG@20": 0.124, "nDCG@100": 0.146, "triplet accuracy": 0.789, "PAN19": 0.628,
    },
    "ngram:1": {
        "R@20": 0.203, "R@100": 0.307, "nDCG@20": 0.152, "nDCG@100": 0.175, "triplet accuracy": 0.789, "PAN19": 0.628,
    },
}  # fmt: skip
SEMANTIC = {"margin of style": 0.30, "margin of meaning": 0.029, "pooled correlation": 0.454}

# Section "Retrieval failure modes": by rank of the true positive, which is among the averaged.
FAILURES = {
    "same field": 0.61,
    "same field, random": 0.20,
    "an author in common, ranks 2–5": 0.114,
    "an author in common, ranks 6–20": 0.118,
    "an author in common, random": 0.0,
    "words of the anchor, rank 1": 0.086,
    "words of the anchor, ranks 2–5": 0.087,
    "words of the anchor, ranks 6–20": 0.085,
    "words of the anchor, random": 0.073,
    "words of the positive, rank 1": 0.129,
    "words of the positive, ranks 2–5": 0.131,
    "words of the positive, ranks 6–20": 0.126,
    "words of the positive, lower": 0.076,
    "Hit@1": 0.208,
    "Hit@5": 0.398,
}

# Table "MaxSim scoring cost per document pair" at 512 tokens of 768 dimensions: patches, FLOPs; and kB a document.
COST: dict[str, tuple[int, float]] = {
    "ngram:1": (512, 4.03e8),
    "ngram:2": (256, 1.01e8),
    "ngram:3": (171, 4.49e7),
    "ngram:4": (128, 2.52e7),
    "ngram:5": (103, 1.63e7),
}
STORAGE: dict[str, float] = {"ngram:1": 768.0, "ngram:2": 384.0, "ngram:5": 154.0}

# Table "Number of triplets": sentences → train, valid, test.
TRIPLETS: dict[int, tuple[float, float, float]] = {
    2: (1.88e6, 19.1e3, 19.1e3),
    4: (1.4e6, 14.3e3, 14.3e3),
    6: (1.11e6, 11.3e3, 11.3e3),
    8: (892e3, 9.1e3, 9.1e3),
}
AUTHOR_SETS = {"mean size": 1.84, "median size": 1.0, "largest": 44.0, "single-author share": 0.51}
OVERLAP = {("unrestricted", 8): 0.11, ("base", 8): 0.022}  # mean Jaccard signal
LEARNED = {"mean probability, reg2": 1 / 3, "patches of a text, reg2": 1.0}
