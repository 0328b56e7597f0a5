"""`python -m idiograph`, and `torchrun -m idiograph train …` on several GPUs."""

from idiograph.cli import main

if __name__ == "__main__":
    main()
