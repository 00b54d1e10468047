"""CUDA tensors sent to other processes by torch.multiprocessing, with hotpack enabled: on the simulated device, with the
driver hooked and without. The receiver has hotpack or PyTorch's own allocator."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("HOTPACK_BUILD", Path(__file__).resolve().parents[2] / "build"))
PACKAGE = Path(__file__).resolve().parents[2] / "python"
SIMGPU = BUILD / "lib" / "simgpu"
LIBRARIES = [SIMGPU / name for name in ("libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcudnn.so.9")]

# A program of a parent and its children, which import it again. Each test adds `child(receive, send)` and
# `parent(process, send, receive)`. The simulated kernels compute nothing: values come from the host, or from memsets.
PROGRAM = """
import faulthandler, os, signal, sys, time
faulthandler.dump_traceback_later(150, exit=True)  # one that waits for another's failure
import torch
import torch.multiprocessing as mp

def run(receive, send):
    if os.environ["RECEIVER"] == "hotpack":
        import hotpack
        hotpack.enable()
    child(receive, send)
    torch.cuda.synchronize()

def values(*shape):
    count = torch.Size(shape).numel()
    return torch.arange(count, dtype=torch.float32).reshape(shape).cuda()

{functions}

if __name__ == "__main__":
    import hotpack
    hotpack.enable()
    from hotpack import _share
    mp.set_start_method("spawn")
    to_child, to_parent = mp.SimpleQueue(), mp.SimpleQueue()
    process = mp.Process(target=run, args=(to_child, to_parent))
    process.start()
    parent(process, to_child, to_parent)
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL), process.exitcode
    _share.collect()
    assert not _share._sent, _share._sent
    print("ended well")
"""


class ShareTest(unittest.TestCase):
    def play(self, functions: str, hooks: bool, receiver: str, **more: str) -> str:
        """stderr of the program, which must end well and leave the checkers of all processes nothing to report."""
        environment = dict(os.environ, HOTPACK_HOME=str(BUILD), PYTHONPATH=str(PACKAGE), RECEIVER=receiver, **more)
        environment.pop("HOTPACK", None)
        with tempfile.TemporaryDirectory() as folder:
            script, reports = Path(folder) / "program.py", Path(folder) / "reports"
            script.write_text(PROGRAM.format(functions=functions))
            command = [sys.executable, str(script)]
            environment["SIMGPU_REPORT_FILE"] = str(reports)
            if hooks:
                command = [str(BUILD / "bin" / "hotpack"), "run", "--simulate", "--", *command]
            else:
                environment["LD_PRELOAD"] = " ".join(str(path) for path in LIBRARIES)
                environment["LD_LIBRARY_PATH"] = str(SIMGPU)
            ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
            self.assertEqual(ended.returncode, 0, ended.stderr[-4000:])
            self.assertIn("ended well", ended.stdout)
            if reports.exists():
                self.assertNotIn("REPORT", reports.read_text())
        return ended.stderr

    def everywhere(self, functions: str) -> None:
        for hooks, receiver in ((False, "hotpack"), (False, "pytorch"), (True, "hotpack")):
            with self.subTest(hooks=hooks, receiver=receiver):
                self.play(functions, hooks, receiver)

    def test_both_see_what_either_writes(self):
        self.everywhere("""
def child(receive, send):
    whole, view, again, parameter, empty = receive.get()
    assert whole.tolist() == [[0, 1, 2], [3, 4, 5]] and whole.stride() == (3, 1)
    assert view.shape == (2, 2) and view.stride() == (1, 3) and view.storage_offset() == 1
    assert view.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr() == again.untyped_storage().data_ptr()
    assert isinstance(parameter, torch.nn.Parameter) and parameter.requires_grad and parameter.is_leaf
    assert parameter.tolist() == [0, 1, 2] and empty.numel() == 0 and empty.is_cuda
    whole.copy_(torch.full((2, 3), 9.0))
    torch.cuda.synchronize()
    send.put("written")
    receive.get()

def parent(process, send, receive):
    whole, parameter = values(2, 3), torch.nn.Parameter(values(3))
    send.put((whole, whole[:, 1:].t(), whole, parameter, torch.empty(0, device="cuda")))
    assert receive.get() == "written"
    assert whole.tolist() == [[9, 9, 9], [9, 9, 9]], whole
    send.put("end")
""")

    def test_a_model_whose_parameters_are_shared(self):
        self.play("""
def child(receive, send):
    model = receive.get()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.full(parameter.shape, 7.0))
    torch.cuda.synchronize()
    send.put("written")
    receive.get()

def parent(process, send, receive):
    model = torch.nn.Sequential(torch.nn.Linear(300, 400), torch.nn.Linear(400, 2)).cuda()
    send.put(model)
    assert receive.get() == "written"
    assert all((parameter.cpu() == 7).all() for parameter in model.parameters())
    send.put("end")
""", True, "hotpack")

    def test_memory_is_kept_for_the_receiver(self):
        """The sender has no use of it any more, and asks for as much memory again and again."""
        functions = """
def child(receive, send):
    tensor = receive.get()
    send.put("here")
    receive.get()
    assert tensor[:3].tolist() == [0, 1, 2], tensor
    del tensor
    send.put("gone")
    receive.get()

def parent(process, send, receive):
    tensor = values(1 << 20)
    place = tensor.data_ptr()
    send.put(tensor)
    tensor.untyped_storage().resize_(0)
    del tensor
    assert receive.get() == "here"
    for _ in range(5):
        others = [torch.full((1 << 20,), 8.0).cuda() for _ in range(4)]
        assert place not in [other.data_ptr() for other in others]
        del others
    send.put("look")
    assert receive.get() == "gone"
    assert len(_share._sent) == 1
    torch.cuda.ipc_collect()
    assert not _share._sent
    others = [torch.empty(1 << 20, device="cuda") for _ in range(5)]
    assert place in [other.data_ptr() for other in others]
    send.put("end")
"""
        self.play(functions, False, "pytorch")
        self.play(functions, True, "hotpack")

    def test_a_receiver_that_is_killed(self):
        self.play("""
def child(receive, send):
    tensor = receive.get()
    send.put("here")
    time.sleep(100)

def parent(process, send, receive):
    send.put(values(1000))
    assert receive.get() == "here"
    _share.collect()
    assert len(_share._sent) == 1
    process.kill()
    process.join()
""", False, "hotpack")

    def test_a_receivers_forked_child_has_nothing(self):
        """A DataLoader's worker outlives the tensor."""
        self.play("""
def child(receive, send):
    tensor = receive.get()
    worker = os.fork()
    if worker == 0:
        time.sleep(100)
        os._exit(1)
    del tensor
    send.put("gone")
    receive.get()
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)

def parent(process, send, receive):
    send.put(values(1000))
    assert receive.get() == "gone"
    for _ in range(100):  # until the worker has begun
        _share.collect()
        if not _share._sent:
            break
        time.sleep(0.1)
    assert not _share._sent
    send.put("end")
""", False, "hotpack")

    def test_a_sender_that_ends_first(self):
        """The driver keeps the memory."""
        self.play("""
def child(receive, send):
    from_grandchild, never = mp.SimpleQueue(), mp.SimpleQueue()
    sender = mp.Process(target=grandchild, args=(from_grandchild, never))
    sender.start()
    tensor = from_grandchild.get()
    sender.kill()
    sender.join()
    assert tensor.tolist() == [0, 1, 2, 3]
    send.put("read")

def grandchild(send, never):
    import hotpack
    hotpack.enable()
    tensor = values(4)
    send.put(tensor)
    never.get()

def parent(process, send, receive):
    assert receive.get() == "read"
""", False, "hotpack")

    def test_many_pieces_and_many_receivers(self):
        """A block of more handles than one message can carry, as an argument of a process, in a pool and in a queue."""
        self.play("""
def child(receive, send):
    pass

def ends(tensor, send):
    send.put([tensor[0].item(), tensor[-1].item()])

def first(tensor):
    return tensor[0].item()

def parent(process, send, receive):
    tensor = torch.zeros(250 << 20, dtype=torch.uint8, device="cuda")
    tensor[:1].copy_(torch.tensor([3], dtype=torch.uint8))
    tensor[-1:].copy_(torch.tensor([4], dtype=torch.uint8))
    pieces, _ = _share._export(tensor.data_ptr(), tensor.numel())
    for piece in pieces:
        os.close(piece.descriptor)
    assert len(pieces) > 2 * _share._FILES_A_MESSAGE / 4, len(pieces)
    started = mp.Process(target=ends, args=(tensor, receive))
    started.start()
    assert receive.get() == [3, 4]
    started.join()
    with mp.Pool(2) as pool:
        assert pool.map(first, [tensor, tensor, tensor[1:]]) == [3, 3, 0]
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        _share._share(tensor.untyped_storage())
    assert len(os.listdir("/proc/self/fd")) <= before + 50, "one file for each transfer, and one for its receiver"
    _share._sent.clear()
""", False, "hotpack", HOTPACK_HANDLE="2:1048576")

    def test_what_cannot_be_shared_is_one_line(self):
        functions = """
def child(receive, send):
    tensor = receive.get()
    try:
        send.put(tensor)
    except RuntimeError as error:
        send.put(str(error))
    send.put("done")

def parent(process, send, receive):
    try:
        send.put(values(4))
        said = receive.get()
        assert said.startswith("Attempted to send CUDA tensor received from another process"), said
    except RuntimeError as error:
        print(error, file=sys.stderr)
        send.put("no tensor")
        receive.get()
    assert receive.get() == "done"
"""
        self.assertNotIn("Error", self.play(functions, False, "hotpack"))
        self.assertIn("does not yet support shareIPcHandle", self.play(functions, False, "hotpack", HOTPACK_SHARE="0"))
        self.assertIn("is not hotpack's own", self.play(functions, False, "hotpack", HOTPACK_ARENA="plain:64"))

    def test_tensors_of_the_host_go_pytorchs_way(self):
        self.play("""
def child(receive, send):
    tensor = receive.get()
    tensor.fill_(5)
    send.put("written")
    receive.get()

def parent(process, send, receive):
    tensor = torch.zeros(4)
    send.put(tensor)
    receive.get()
    assert tensor.tolist() == [5, 5, 5, 5]
    send.put("end")
""", False, "hotpack")


if __name__ == "__main__":
    unittest.main()
