import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { startInGroup } from "../cgroup.ts";
import { consoleLogOf } from "../record.ts";
import { mustRun } from "../run-command.ts";

interface QemuDisk {
  readonly file: string;
  readonly serial: string;
  /** QEMU's name of the disk; default: its serial. */
  readonly id?: string;
  /** Several machines may have the disk at once. */
  readonly isReadOnly?: boolean;
  /** The firmware tries to boot from this disk first. */
  readonly isFirst?: boolean;
}

/** A virtual machine for QEMU. A saved state fits only a machine that is the same in all but disks, names and address. */
export interface Qemu {
  /** The folder of its root, sockets and logs. */
  readonly folder: string;
  /** The folder of kernel and initrd; absent: the saved state has a kernel, or the firmware boots from the first data disk. */
  readonly image?: string;
  readonly id: string;
  /** The name of the tap device that is its cable; the device exists as long as QEMU. */
  readonly cable?: string;
  readonly mac: string;
  readonly disks: readonly QemuDisk[];
  /** The socket of its TPM; absent: no TPM. */
  readonly tpm?: string;
  /** The file of a saved state that it resumes; absent: it boots. */
  readonly state?: string;
}

/** Memory in MiB; deploy_node requires 512. */
const memory = 1024;

/** Starts QEMU in a cgroup; QEMU outlives this process. Returns a function that says whether it still runs. */
export async function startQemu(group: string, qemu: Qemu): Promise<() => Promise<boolean>> {
  const command = ["qemu-system-x86_64", ...(await qemuArguments(qemu))];
  const lives = await startInGroup(group, command, join(qemu.folder, "qemu.log"));
  return () => Promise.resolve(lives());
}

/** The properties of a machine that a saved state must fit; the state's name has a hash of them. */
export async function machineKind(): Promise<string[]> {
  return [...machineArguments(), await kernelLine()];
}

function machineArguments(): string[] {
  return optionWords({
    machine: "pc,usb=off,vmport=off,hpet=off",
    accel: "tcg,thread=multi,tb-size=512",
    cpu: "qemu64,-svm,+rdrand,+ssse3,+sse4.1,+sse4.2,+popcnt",
    // A second processor would make all work a quarter slower, because emulated processors wait for each other.
    smp: "1",
    m: String(memory),
    display: "none",
    vga: "none",
    device: ["virtio-rng-pci"],
  }).concat("-nodefaults", "-no-user-config");
}

/** Options with one dash as arguments; an option with several values is repeated. */
function optionWords(options: Readonly<Record<string, string | readonly string[]>>): string[] {
  return Object.entries(options).flatMap(([name, values]) => [values].flat().flatMap((value) => [`-${name}`, value]));
}

/** Names of the sockets in a machine's folder. */
export const sockets = { monitor: "qmp", console: "oob" } as const;

/** A data disk as QEMU takes it, on the command line or while the machine runs. */
export function diskDevice({ file, serial, id = serial, isReadOnly = false, isFirst = false }: QemuDisk): {
  readonly block: object;
  readonly device: Readonly<Record<string, string | number>>;
} {
  const name = `d-${id}`;
  return {
    block: {
      driver: "raw",
      "node-name": name,
      "read-only": isReadOnly,
      discard: "unmap",
      file: { driver: "file", filename: file },
    },
    device: { driver: "virtio-blk-pci", drive: name, id, serial, ...(isFirst ? { bootindex: 0 } : {}) },
  };
}

/** The arguments of qemu-system-x86_64(1) for a machine. */
export async function qemuArguments({ folder, image, id, cable, mac, disks, tpm, state }: Qemu): Promise<string[]> {
  const socket = (name: string): string => `unix:${join(folder, name)},server=on,wait=off`;
  const data = disks.map(diskDevice);
  const own = optionWords({
    uuid: id,
    chardev: `file,id=log,path=${consoleLogOf({ folder })},append=on`,
    serial: ["chardev:log", socket(sockets.console)],
    qmp: socket(sockets.monitor),
    netdev: `tap,id=n0,script=no,downscript=no${cable === undefined ? "" : `,ifname=${cable}`}`,
    drive: `if=none,id=root,file=${join(folder, "root.qcow2")},format=qcow2,cache=writeback,discard=unmap`,
    blockdev: data.map(({ block }) => JSON.stringify(block)),
    device: [
      `virtio-net-pci,netdev=n0,mac=${mac},romfile=`,
      "virtio-blk-pci,drive=root,serial=root",
      ...data.map(({ device }) => JSON.stringify(device)),
    ],
    incoming: state === undefined ? [] : `exec:cat ${state}`,
  });
  const security =
    tpm === undefined
      ? {}
      : { chardev: `socket,id=tpm,path=${tpm}`, tpmdev: "emulator,id=tpm0,chardev=tpm", device: "tpm-tis,tpmdev=tpm0" };
  const boot =
    image === undefined
      ? {}
      : { kernel: join(image, "vmlinuz"), initrd: join(image, "initrd"), append: await kernelLine() };
  return [...machineArguments(), ...optionWords(boot), ...own, ...optionWords(security)];
}

/**
 * The kernel's command line. It gives the rate of the clock, which is this machine's, because on a loaded machine the kernel would
 * measure it wrong.
 * `norandmaps`: QEMU translates code anew for each address that it runs at, and random addresses would make a process three
 * times as slow.
 */
async function kernelLine(): Promise<string> {
  // bogomips is twice the clock's rate if the processor has a steady one; “cpu MHz” varies with the load.
  const [, bogomips = "0"] = /^bogomips\s*:\s*([\d.]+)/m.exec(await readFile("/proc/cpuinfo", "utf8")) ?? [];
  const kilohertz = Math.round(Number(bogomips) * 500);
  const clock = `tsc=reliable tsc_early_khz=${kilohertz}`;
  return `root=/dev/vda rw rootfstype=ext4 console=ttyS0 quiet net.ifnames=0 ${cheapKernel.join(" ")} ${clock} lab.oob`;
}

/** Words of a kernel's command line that save computing, because an emulated processor is slow. */
export const cheapKernel = [
  "mitigations=off",
  "audit=0",
  "lsm=yama",
  "init_on_alloc=0",
  "hardened_usercopy=off",
  "cryptomgr.notests",
  "random.trust_cpu=on",
  "norandmaps",
] as const;

export async function qemuVersion(): Promise<string> {
  return (await mustRun("qemu-system-x86_64", ["--version"])).split("\n")[0] ?? "";
}
