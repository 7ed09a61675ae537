import { Option, type Command } from "commander";
import { formatBinary } from "#base/units.ts";
import type { InstallRequest } from "./request.ts";
import {
  addMachineOptions,
  addProjectOption,
  addResultOption,
  addViewOptions,
  caPassphrase,
  collect,
  type MachineFlags,
  type ResultFormat,
} from "../options.ts";
import type { InstallFlags } from "./install-node.ts";
import { grantOption } from "../watch/run-options.ts";
import { printRows } from "../terminal/format-result.ts";
import { shownTasks } from "../terminal/shown-tasks.ts";

type NodeInstallFlags = InstallFlags &
  MachineFlags &
  Partial<Omit<InstallRequest, "node" | "dataDisks" | "joinControllers">> & {
    readonly dataDisk?: string[];
    readonly joinController?: string[];
  };

const backend = (flags: string, text: string): Option => new Option(flags, text).choices(["filesystem", "lvm", "zfs"]);

/** `kcore node install`, with the flags of the kcore documentation. */
export function addNodeInstall(node: Command): void {
  addViewOptions(addMachineOptions(addProjectOption(node.command("install"))))
    .description("Write a machine's roster entry and deploy it over SSH until it is a ready member")
    .option(
      "--os-disk <path>",
      "the disk that gets an operating system, from a live one; with --os-installed it is recorded, and not touched",
    )
    .option(
      "--os <name>",
      "the system: debian, nixos, or NAME of a project with states/system/NAME.yaml (default: debian)",
    )
    .option("--os-installed", "the operating system is there already")
    .option("--encrypt-os", "LUKS2 under the root filesystem; a recovery key unlocks the root at each boot")
    .option("--os-unlock <how>", "the way to unlock the root, besides the recovery key at the console (default: ssh)")
    .option(
      "--data-disk <path>",
      "a disk for volumes (repeatable); blank, made by kcore, or granted (--grant)",
      collect,
    )
    .addOption(backend("--data-disk-mode <mode>", "the use of data disks (default: filesystem)"))
    .addOption(backend("--storage-backend <backend>", "the use of data disks; wins over --data-disk-mode"))
    .option("--encrypt-disks", "LUKS2 under each data disk's filesystem, volume group or pool, with a recovery key")
    .addOption(
      new Option("--disk-unlock <how>", "the way to unlock data disks at boot (default: keyFile)").choices([
        "keyFile",
        "tpm2",
      ]),
    )
    .option("--lvm-vg-name <name>", "volume group, for the backend lvm")
    .option("--lvm-lv-prefix <prefix>", "prefix of logical volumes, for the backend lvm")
    .option("--zfs-pool-name <name>", "pool, for the backend zfs")
    .option("--zfs-dataset-prefix <prefix>", "prefix of datasets, for the backend zfs")
    .option("--join-controller <host:port>", "a controller that the node belongs to (repeatable: fail-over)", collect)
    .option(
      "--run-controller",
      "run a controller on the node, which joins the named controllers, or founds the cluster",
    )
    .option("--dc-id <name>", "the node's datacenter (default: DC1)")
    .option(
      "--hostname <name>",
      "the node's name (default: kvm-node-ADDRESS-WITH-DASHES, or the host name's first label)",
    )
    .option("--node-id <uuid>", "the node's id (default: a new one)")
    .option("--disable-vxlan", "no VXLAN overlay on this node")
    .addOption(grantOption())
    .option("--set <name=value>", "a parameter of deploy_node, such as os_kernel or memory (repeatable)", collect)
    .option(
      "--dry-run",
      "write the roster entry, which pins the disks, and show what would change; change nothing on the machine",
    )
    .option("--skip-health", "do not look at the cluster's health first; this is recorded")
    .option("--wait", "wait for a node that another run holds instead of refusing")
    .option("--yes", "answer every confirmation of the deployment with yes")
    .option(...caPassphrase)
    .addHelpText(
      "after",
      `
Examples:
  kcore node install --node 192.0.2.11:9091 --os-disk /dev/sda --run-controller --dc-id DC1 -k
  kcore node install --node 192.0.2.11:9091 --os-disk /dev/sda --run-controller -k --dry-run
  kcore node install --node 192.0.2.12:9091 --os-disk /dev/sda --join-controller 192.0.2.11:9090 -k --ask-password
  kcore node install --node 192.0.2.14:9091 --os-disk /dev/sda --encrypt-os --join-controller 192.0.2.11:9090 -k
  kcore node install --node 192.0.2.15:9091 --os-disk /dev/sda --os nixos --join-controller 192.0.2.11:9090 -k
  kcore node install --node 192.0.2.13:9091 --os-disk /dev/sda --os-installed -k \\
    --join-controller 192.0.2.11:9090 --join-controller 192.0.2.12:9090`,
    )
    .action(async (flags: NodeInstallFlags) => {
      const { installNode } = await import("./install-node.ts");
      process.exitCode = await installNode(requestFrom(flags), flags);
    });
}

/** The request that the flags describe, under a manifest's keys. */
export function requestFrom({ node = "", dataDisk, joinController, ...flags }: NodeInstallFlags): InstallRequest {
  return { ...flags, node, dataDisks: dataDisk, joinControllers: joinController };
}

interface HardwareFlags extends MachineFlags {
  readonly project?: string;
  readonly output: ResultFormat;
}

/** `kcore node disks` and `kcore node nics`. */
export function addNodeHardware(node: Command): void {
  const add = (name: string, description: string): Command =>
    addResultOption(addMachineOptions(addProjectOption(node.command(name))), ["table", "json"])
      .description(description)
      .addHelpText("after", `\nExamples:\n  kcore node ${name} --node 192.0.2.11:9091 -k`);
  add("disks", "List the disks of one machine, over SSH; it need not be in the roster yet").action(disks);
  add("nics", "List the network cards of one machine, over SSH; it need not be in the roster yet").action(nics);
}

async function disks({ output, ...flags }: HardwareFlags): Promise<void> {
  const { listDisks, withMachine } = await import("./hardware.ts");
  const { devices } = await withMachine(flags, (host) => listDisks(host, shownTasks(output)));
  const found = devices.map(({ name, path, type, size, fstype, mounts, model, serial, wwn }) => {
    const [mountpoint = ""] = mounts;
    return { name, path, type, size, fstype, mountpoint, model, serial, wwn };
  });
  const heading = ["NAME", "PATH", "SIZE", "FSTYPE", "MOUNTPOINT", "MODEL", "SERIAL"];
  const rows = found.map(({ name, path, size, fstype, mountpoint, model, serial }) => [
    name,
    path,
    formatBinary(size),
    fstype,
    mountpoint,
    model,
    serial,
  ]);
  printRows(found, output, heading, rows);
}

async function nics({ output, ...flags }: HardwareFlags): Promise<void> {
  const { readNetworkCards, withMachine } = await import("./hardware.ts");
  const found = await withMachine(flags, readNetworkCards);
  const rows = found.map(({ name, mac, state, mtu, addresses }) => [
    name,
    mac,
    state,
    String(mtu),
    addresses.join(" "),
  ]);
  printRows(found, output, ["NAME", "MAC", "STATE", "MTU", "ADDRESSES"], rows);
}
