"""Size and number of the buffers that CUPTI fills (`native/cupti/buffer_pool.h`).

They limit raw records waiting to be decoded to 64 MiB. CUPTI drops further ones and counts them.
"""

BUFFER_BYTES = 4 << 20
BUFFERS = 16
