"""A large index by the evidence of several methods: sketches choose the candidates, a panel stands for everybody."""
