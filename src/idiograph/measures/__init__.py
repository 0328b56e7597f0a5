"""Numbers from scores: ranking, likelihood ratios, the measures of PAN. Nothing else."""
