"""The search for libcupti, on a constructed file tree per case."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from epprof_nb.core.errors import CaptureError
from epprof_nb.recording.cupti import find_library
from epprof_nb.recording.cupti.find_library import (
    CuptiNotFoundError,
    Environment,
    find_driver,
    locate_libcupti,
)

SONAME = b"\x7fELF....\0libcupti.so.%d\0...."


@pytest.fixture
def tree(tmp_path):
    """Create libraries in a temporary file system."""

    def make(path: str, soname: int = 0) -> str:
        library = tmp_path / path
        library.parent.mkdir(parents=True, exist_ok=True)
        library.write_bytes(SONAME % soname if soname else b"\x7fELF")
        return str(library)

    make.root = tmp_path
    return make


def environment(tree, **given) -> Environment:
    given.setdefault("import_path", (tree.root / "site",))
    return Environment(root=tree.root, prefix=tree.root / "env", **given)


def wheels(tree) -> tuple[str, str]:
    return (
        tree("site/nvidia/cuda_cupti/lib/libcupti.so.12"),
        tree("site/nvidia/cu13/lib/libcupti.so.13"),
    )


def test_one_that_is_loaded_is_taken_whatever_else_there_is(tree):
    wheels(tree)
    loaded = tree("opt/libcupti.so.12")
    found = locate_libcupti(
        environment(tree, mapped=("/lib/libc.so.6", loaded, "/x/libcudart.so.13"))
    )
    assert (found.path, found.cuda_major) == (loaded, 12)
    assert found.origin == "loaded in this process"


def test_of_two_loaded_the_one_of_the_cuda_in_use_is_taken(tree):
    mapped = ("/a/libcupti.so.12", "/b/libcupti.so.13", "/c/libcublasLt.so.13.1.0.3")
    assert locate_libcupti(environment(tree, mapped=mapped)).path == "/b/libcupti.so.13"


@pytest.mark.parametrize(
    "library",
    ["libcudart.so.12", "libcudart.so.12.9.79", "libcudart-9335f6a2.so.12.4.127", "libnvrtc.so.12",
     "libcublas.so.12.9.1.4", "libcublasLt.so.12"],
)  # fmt: skip
def test_loaded_cuda_libraries_tell_the_version(tree, library):
    old, _ = wheels(tree)
    found = locate_libcupti(environment(tree, mapped=(f"/somewhere/{library}",)))
    assert (found.path, found.cuda_major) == (old, 12)


@pytest.mark.parametrize(
    "library", ["libcudart.so.old", "libcudnn.so.9", "libnvrtc-builtins.so.12"]
)
def test_other_libraries_do_not(tree, library):
    wheels(tree)
    assert locate_libcupti(environment(tree, mapped=(f"/somewhere/{library}",))).cuda_major == 13


def test_imported_torch_tells_the_version(tree):
    wheels(tree)
    torch = SimpleNamespace(version=SimpleNamespace(cuda="12.8"))
    assert locate_libcupti(environment(tree, modules={"torch": torch})).cuda_major == 12
    cpu_only = SimpleNamespace(version=SimpleNamespace(cuda=None))
    assert locate_libcupti(environment(tree, modules={"torch": cpu_only})).cuda_major == 13


def test_imported_cupy_tells_the_version(tree):
    wheels(tree)
    runtime = SimpleNamespace(runtimeGetVersion=lambda: 12090)
    modules = {"cupy_backends.cuda.api.runtime": runtime}
    assert locate_libcupti(environment(tree, modules=modules)).cuda_major == 12


@pytest.mark.parametrize(
    ("installed", "major"),
    [({"cupy-cuda12x": "14.2.0"}, 12), ({"nvidia-cuda-runtime-cu12": "12.9.79"}, 12),
     ({"nvidia-cuda-runtime": "13.0.96"}, 13), ({}, 13)],
)  # fmt: skip
def test_before_cuda_is_loaded_installed_packages_tell_the_version(tree, installed, major):
    wheels(tree)
    assert locate_libcupti(environment(tree, version_of=installed.get)).cuda_major == major


def test_wheels_come_before_toolkits_and_say_their_version(tree):
    tree("usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13")
    _, wheel = wheels(tree)
    versions = {"nvidia-cuda-cupti": "13.0.85"}
    found = locate_libcupti(environment(tree, version_of=versions.get))
    assert found.path == wheel
    assert found.origin == "wheel nvidia-cuda-cupti 13.0.85"


@pytest.mark.parametrize(
    ("path", "environ"),
    [
        ("usr/local/cuda/extras/CUPTI/lib64", {}),
        ("usr/local/cuda-13.0/lib64", {}),
        ("opt/cuda/extras/CUPTI/lib64", {"CUDA_HOME": "opt/cuda"}),
        ("opt/cuda/lib64", {"CUDA_PATH": "opt/cuda"}),
        ("site/torch/lib", {}),
        ("conda/lib", {"CONDA_PREFIX": "conda"}),
        ("env/lib", {}),
        ("mine", {"LD_LIBRARY_PATH": "mine"}),
        ("usr/lib/x86_64-linux-gnu", {}),
    ],
)
def test_every_usual_place_is_looked_in(tree, path, environ):
    library = tree(f"{path}/libcupti.so.13")
    absolute = {name: str(tree.root / value) for name, value in environ.items()}
    assert locate_libcupti(environment(tree, environ=absolute)).path == library


def test_a_file_named_by_year_tells_its_version_inside(tree):
    real = tree("usr/local/cuda-12.8/lib64/libcupti.so.2025.1.1", soname=12)
    link = Path(real).with_name("libcupti.so.12")
    link.symlink_to(real)
    found = locate_libcupti(environment(tree))
    assert found.cuda_major == 12
    assert Path(found.path).resolve() == Path(real)
    assert locate_libcupti(environment(tree, mapped=(real,))).cuda_major == 12, (
        "as the process's maps name it"
    )


def test_a_broken_link_or_an_unreadable_file_is_no_library(tree):
    link = tree.root / "env/lib/libcupti.so.13"
    link.parent.mkdir(parents=True)
    link.symlink_to(tree.root / "gone")
    tree("env/lib/libcupti.so.txt")
    with pytest.raises(CuptiNotFoundError):
        locate_libcupti(environment(tree))
    assert find_library.cuda_major_of(tree.root / "libcupti.so.2025.1") == 0


def test_the_wrong_version_is_refused_and_named(tree):
    old, _ = wheels(tree)
    (tree.root / "site/nvidia/cu13/lib/libcupti.so.13").unlink()
    with pytest.raises(CuptiNotFoundError) as caught:
        locate_libcupti(environment(tree, mapped=("/x/libcudart.so.13",)))
    message = str(caught.value)
    assert isinstance(caught.value, CaptureError)
    assert "libcudart.so.13 is loaded" in message
    assert f"Found instead: {old} for CUDA 12" in message
    assert 'pip install "nvidia-cuda-cupti>=13,<14"' in message
    assert 'pip install "epprof-nb[cuda13]"' in message
    assert str(tree.root / "usr/local/cuda/extras/CUPTI/lib64") in message


def test_the_remedy_names_the_package_of_cuda_12(tree):
    with pytest.raises(CuptiNotFoundError, match=r'"nvidia-cuda-cupti-cu12".*cuda12'):
        locate_libcupti(environment(tree, mapped=("/x/libcudart.so.12",)))


def test_cuda_before_12_is_told_apart(tree):
    wheels(tree)
    with pytest.raises(CuptiNotFoundError, match=r"uses CUDA 11 .*needs CUDA 12"):
        locate_libcupti(environment(tree, mapped=("/x/libcudart.so.11.0",)))


def test_the_driver_that_is_loaded_is_found(tree):
    assert find_driver(environment(tree, mapped=("/usr/lib/libcuda.so.580.159.04",))) == (
        "/usr/lib/libcuda.so.580.159.04"
    )
    assert find_driver(environment(tree, mapped=("/usr/lib/libcudart.so.13",))) is None


def test_mapped_files_are_read_from_the_process(tmp_path, monkeypatch):
    maps = tmp_path / "maps"
    maps.write_text(
        "7f00-7f01 r--p 00000000 08:01 42    /opt/with space/libcupti.so.12\n"
        "7f01-7f02 r-xp 00001000 08:01 42    /opt/with space/libcupti.so.12\n"
        "7f02-7f03 rw-p 00000000 00:00 0 \n"
        "7ffe-7fff rw-p 00000000 00:00 0     [stack]\n"
    )
    monkeypatch.setattr(find_library, "_MAPS", maps)
    assert find_library.mapped_files() == ("/opt/with space/libcupti.so.12",)
    monkeypatch.setattr(find_library, "_MAPS", tmp_path / "none")
    assert find_library.mapped_files() == ()


def test_the_search_loads_and_imports_nothing():
    code = (
        "import sys; from epprof_nb.recording.cupti import find_library\n"
        "before = set(find_library.mapped_files()); modules = set(sys.modules)\n"
        "try: find_library.locate_libcupti()\n"
        "except find_library.CuptiNotFoundError: pass\n"
        "new = set(find_library.mapped_files()) - before\n"
        "assert not [name for name in new if 'cu' in name.split('/')[-1]], new\n"
        "assert not {'torch', 'cupy'} & (set(sys.modules) - modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
