"""Parts of jobs, read with their manifests."""

from epprof_nb.files.dataset.part import read_manifest, read_profile


def read_part(folder, **options):
    manifest = read_manifest(folder)
    return read_profile(folder, manifest, **options), manifest
