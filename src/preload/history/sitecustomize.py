"""PyTorch's own recorder, switched on in a program that knows nothing of it.

`cudamem record --torch-history` puts the folder of this file first on PYTHONPATH, where Python finds it at its start.  It
waits for torch.cuda to be imported, has recording begin when CUDA is initialised, which is before the first allocation,
and leaves snapshots for `cudamem record` in its folder: at the end, at an out of memory, and when one is asked for.
The user's own sitecustomize runs as it would without.  Nothing here may raise into the program: what fails is left out,
and the command says so.
"""
import os
import sys


class _History:
    """The recorder of this process, from the start of CUDA on."""

    ooms_kept = 3
    seconds_between_looks = 0.2

    def __init__(self, folder):
        self.folder = folder
        self.pid = None
        self.ooms = 0

    def path(self, word, suffix):
        return os.path.join(self.folder, "%d.%s.%s" % (os.getpid(), word, suffix))

    def begin(self):
        """Called once, by torch.cuda's own initialisation."""
        try:
            import atexit
            import torch
            options = {"enabled": "all", "context": "all", "stacks": "python"}
            most = os.environ.get("CUDAMEM_MAX_ENTRIES", "")
            if most.isdigit():
                options["max_entries"] = int(most)
            torch.cuda.memory._record_memory_history(**options)
            self.pid = os.getpid()
            open(self.path("on", "torch"), "w", encoding="utf-8").close()
            torch._C._cuda_attach_out_of_memory_observer(self.out_of_memory)
            atexit.register(self.save, "end")
            self.watch()
        except Exception as error:
            self.complain(error)

    def save(self, word):
        """The trace and the state now; whole or not at all."""
        if self.pid != os.getpid():  # a forked child has no CUDA of its own
            return
        try:
            import pickle
            import torch
            whole, part = self.path(word, "torch"), self.path(word, "torch.new")
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                pickle.dump(torch.cuda.memory._snapshot(), file, protocol=4)
            os.replace(part, whole)
        except Exception as error:
            self.complain(error)

    def out_of_memory(self, device, allocated, device_allocated, device_free):
        self.ooms += 1
        if self.ooms <= self.ooms_kept:
            self.save("oom%d" % self.ooms)

    def watch(self):
        """Somebody outside asks by a file; a thread looks for it now and then."""
        import threading
        import time

        def look():
            while True:
                time.sleep(self.seconds_between_looks)
                asked = self.path("asked", "torch")
                if os.path.exists(asked):
                    self.save("now")
                    try:
                        os.unlink(asked)
                    except OSError:
                        pass

        threading.Thread(target=look, name="cudamem-history", daemon=True).start()

    def complain(self, error):
        try:
            with open(self.path("failed", "torch"), "w", encoding="utf-8") as file:
                file.write("%s: %s\n" % (type(error).__name__, error))
        except Exception:
            pass


class _AfterImport:
    """A loader that does what another one does, and then calls a function."""

    def __init__(self, loader, function):
        self.loader = loader
        self.function = function

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.function(module)

    def __getattr__(self, name):
        return getattr(self.loader, name)


class _Finder:
    """Stands first on sys.meta_path until torch.cuda was found."""

    def __init__(self, function):
        self.function = function

    def find_spec(self, name, path=None, target=None):
        if name != "torch.cuda":
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _AfterImport(spec.loader, self.function)
                return spec
        return None


def _wait_for_torch():
    folder = os.environ.get("CUDAMEM_RING_FOLDER")
    if os.environ.get("CUDAMEM_TORCH_HISTORY") != "1" or not folder or not os.path.isdir(folder):
        return
    history = _History(folder)

    def imported(module):
        try:
            module._lazy_call(history.begin)
        except Exception as error:
            history.complain(error)

    sys.meta_path.insert(0, _Finder(imported))


def _run_the_users_own():
    """What Python would have found without us; its errors are Python's to report."""
    import importlib.machinery
    import importlib.util
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or os.curdir) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_wait_for_torch()
_run_the_users_own()
