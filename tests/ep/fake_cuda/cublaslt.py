"""The stand-in for cuBLASLt, which is part of the stand-in for the driver, for tests."""

from __future__ import annotations

import ctypes
from typing import NamedTuple


class Product(NamedTuple):
    """Sizes of products by rows, and what was added to them."""

    batch: int
    rows: int
    columns: int
    depth: int
    has_bias: bool
    has_matrix: bool
    compute: int = 68  # cublasComputeType_t: in float32


class CublasLt:
    """Products that the stand-in has computed, and a switch to refuse them."""

    def __init__(self, driver):
        self.library = driver.library
        self.library.fake_lt_products.restype = ctypes.c_size_t
        self.refuse(False)
        self.forget()

    @property
    def products(self):
        most = 1000
        numbers = (ctypes.c_int64 * (7 * most))()
        count = self.library.fake_lt_products(numbers, ctypes.c_size_t(most))
        assert count <= most
        return [Product(*numbers[7 * i : 7 * i + 7]) for i in range(count)]

    def forget(self):
        self.library.fake_lt_forget()

    def refuse(self, refused):
        """Refuse all further products, as if there were no algorithm for them."""
        self.library.fake_lt_refuse(int(refused))
