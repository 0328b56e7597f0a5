"""MaxSim on torch: padded, fused on a GPU, relaxed for training, pruned for large collections."""
