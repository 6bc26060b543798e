"""Memory cgroups, which bound a process with its page cache."""
import os
import time


class Group:
    """A memory cgroup of v1 or v2."""

    def __init__(self, limit):
        v1 = os.path.isdir("/sys/fs/cgroup/memory")
        self.dir = "/sys/fs/cgroup/%sgdb-peers-%d" % ("memory/" if v1 else "", os.getpid())
        self.peak_file = "memory.max_usage_in_bytes" if v1 else "memory.peak"
        os.mkdir(self.dir)
        self.write("memory.limit_in_bytes" if v1 else "memory.max", limit)
        if not v1:
            self.write("memory.swap.max", 0)

    def write(self, name, value):
        with open(os.path.join(self.dir, name), "w") as f:
            f.write(str(value))

    def join(self):
        self.write("cgroup.procs", os.getpid())

    def peak(self):
        with open(os.path.join(self.dir, self.peak_file)) as f:
            return int(f.read())

    def remove(self):
        for _ in range(50):
            try:
                return os.rmdir(self.dir)
            except OSError:
                time.sleep(0.01)


class SlowDisk:
    """A cgroup whose processes read from the disk of a path at no more than a rate: reads a second,
    and bytes a second."""

    def __init__(self, path, reads, bandwidth):
        v1 = os.path.isdir("/sys/fs/cgroup/blkio")
        self.dir = "/sys/fs/cgroup/%sgdb-peers-disk-%d" % ("blkio/" if v1 else "", os.getpid())
        disk = os.stat(path).st_dev
        name = "%d:%d" % (os.major(disk), os.minor(disk))
        os.mkdir(self.dir)
        if v1:
            self.write("blkio.throttle.read_iops_device", "%s %d" % (name, reads))
            self.write("blkio.throttle.read_bps_device", "%s %d" % (name, bandwidth))
        else:
            self.write("io.max", "%s riops=%d rbps=%d" % (name, reads, bandwidth))

    def write(self, name, value):
        with open(os.path.join(self.dir, name), "w") as f:
            f.write(str(value))

    def join(self):
        self.write("cgroup.procs", os.getpid())
