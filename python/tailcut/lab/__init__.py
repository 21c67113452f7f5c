"""The kernel lab: runs of a plan over real TCP stacks, in network namespaces of this machine.

The work is done by the extension, in a process of its own (`tailcut.lab.worker`), which `tailcut.lab.process` starts
and listens to. `tailcut.lab.doctor` says what this kernel offers.
"""
