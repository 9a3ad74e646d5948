"""A small model on the GPU, after its first step."""

import torch


def small():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)]
    model = torch.nn.Sequential(*layers).cuda()
    x = torch.randn(64, 256, device="cuda")
    model(x).sum().backward()
    torch.cuda.synchronize()
    return model, x
