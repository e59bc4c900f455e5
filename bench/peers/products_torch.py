"""Times products of matrices by PyTorch, which is cuBLAS in full fp32 on a GPU: the peer of `classes -- cuda products`.

    python bench/peers/products_torch.py

Microseconds of two products, as in a step of that class, and of the four more of its gradient, inside a CUDA graph of
twenty such steps; the best of many.
"""

import torch


def best(step, steps=20, rounds=30):
    """The least microseconds of a step, of replays of a graph of many."""
    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(steps):
            step()
    least = float("inf")
    for _ in range(rounds):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        least = min(least, start.elapsed_time(end) * 1e3 / steps)
    return least


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    print(torch.cuda.get_device_name(), torch.__version__)
    for batch, n in [(64, 512), (256, 1024), (1024, 1024), (2048, 2048)]:
        h, z = torch.randn(batch, n, device="cuda"), torch.zeros(batch, n, device="cuda")
        dh, dz = torch.randn(batch, n, device="cuda"), torch.zeros(batch, n, device="cuda")
        w, dw = torch.randn(n, n, device="cuda") / n**0.5, torch.zeros(n, n, device="cuda")

        def program():
            torch.mm(h, w, out=z)
            torch.mm(z, w, out=h)

        def gradient():
            program()
            dw.addmm_(z.T, dh)
            torch.mm(dh, w.T, out=dz)
            dw.addmm_(h.T, dz)
            torch.mm(dz, w.T, out=dh)

        print(f"two products, {batch} x {n} x {n}: {best(program):9.1f} / {best(gradient):9.1f} us")


if __name__ == "__main__":
    main()
