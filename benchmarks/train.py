"""MaxSim forward and backward: ours and the peers that are installed, on the same input, in one run.

    python benchmarks/train.py            # a GPU if there is one, else small shapes on the CPU

Prints the median time, the ratio to ours, and how far each is from the answer in double precision.
"""

import statistics
import time

import torch
from sentence_transformers.multi_vector_encoder.scoring import colbert_scores

from idiograph.neural.maxsim import maxsim

GPU = torch.cuda.is_available()
SHAPES = (
    [(256, 160, 512, 160, 384), (256, 80, 512, 80, 384), (256, 54, 512, 54, 384), (256, 160, 512, 160, 128)]
    + [(256, 160, 512, 160, 768), (256, 54, 512, 54, 128), (64, 512, 128, 512, 384)]
    if GPU
    else [(8, 80, 16, 80, 384), (8, 54, 16, 54, 128)]
)
TENSOR_CORES = 790e12  # bf16 multiply-adds a second that an H200 reaches on a large product, times two


def peers():
    """name → function of padded rows and masks."""
    found = {"idiograph": maxsim}
    found["sentence-transformers"] = lambda a, am, b, bm: colbert_scores(a, b[:, None], am, bm[:, None])
    try:
        from late_interaction_kernels import maxsim as lik

        found["late-interaction-kernels"] = lambda a, am, b, bm: lik(a, b, am, bm)
    except ImportError:
        pass
    try:
        from flash_maxsim import flash_maxsim_batched_train as flash

        found["flash-maxsim"] = lambda a, am, b, bm: flash(a, b, True, bm.sum(1).int(), am.sum(1).int())
    except ImportError:
        pass
    return found


def rows(texts, longest, dim):
    vectors = torch.nn.functional.normalize(torch.randn(texts, longest, dim), dim=-1)
    vectors = vectors.to("cuda" if GPU else "cpu", torch.bfloat16 if GPU else torch.float32)
    mask = torch.ones(texts, longest, dtype=torch.bool, device=vectors.device)
    return vectors.requires_grad_(), mask


def clock(function, repeat=15):
    """Median milliseconds, after a warm-up; the first call is timed apart, for what compiling costs."""
    times = []
    for _ in range(repeat + 3):
        if GPU:
            torch.cuda.synchronize()
        begun = time.perf_counter()
        function()
        if GPU:
            torch.cuda.synchronize()
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times[3:]), times[0]


def error(function, dim):
    """Relative distance of score and gradients from double precision."""
    torch.manual_seed(1)
    (a, am), (b, bm) = rows(6, 40, dim), rows(8, 50, dim)
    weight = torch.randn(6, 8, device=a.device)
    function(a, am, b, bm).float().backward(weight)
    exact = [x.detach().double().requires_grad_() for x in (a, b)]
    score = torch.einsum("asd,btd->abst", *exact).amax(-1).sum(-1)
    score.backward(weight.double())
    pairs = [(function(a, am, b, bm), score), (a.grad, exact[0].grad), (b.grad, exact[1].grad)]
    return [float((x.double() - y).norm() / y.norm()) for x, y in pairs]


def main():
    print(torch.cuda.get_device_name() if GPU else "CPU", torch.__version__)
    for shape in SHAPES:
        texts, long, others, longer, dim = shape
        floor = 2 * texts * long * others * longer * dim / TENSOR_CORES * 1e3
        print(
            f"\n{texts}×{long} against {others}×{longer}, d={dim}"
            + (f": floor of the forward {floor:.2f} ms" if GPU else "")
        )
        torch.manual_seed(0)
        (a, am), (b, bm) = rows(texts, long, dim), rows(others, longer, dim)
        weight = torch.randn(texts, others, device=a.device)
        ours = None
        for name, function in peers().items():
            try:

                def both(function=function):
                    a.grad = b.grad = None
                    function(a, am, b, bm).float().backward(weight)

                if GPU:
                    torch.cuda.reset_peak_memory_stats()
                total, first = clock(both)
                with torch.no_grad():
                    forward, _ = clock(lambda function=function: function(a, am, b, bm))
                ours = ours or total
                memory = f"{torch.cuda.max_memory_allocated() / 2**30:6.2f} GiB" if GPU else ""
                wrong = " ".join(f"{e:.1e}" for e in error(function, dim))
                print(
                    f"  {name:26} both {total:8.2f} ms  forward {forward:8.2f} ms  {total / ours:5.2f}×  {memory}"
                    f"  first call {first / 1e3:5.1f} s  error {wrong}",
                    flush=True,
                )
            except Exception as failed:  # a peer that cannot do a shape is part of the result
                print(f"  {name:26} failed: {str(failed).splitlines()[0][:90]}", flush=True)


if __name__ == "__main__":
    main()
