import type { z } from "zod";
import { formatEndpoint, parseEndpoint } from "#api/endpoint.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import { VolumeName } from "#engine/step/disk-names.ts";
import { PoolName } from "#engine/step/zfs-names.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { Plain } from "#engine/roster/flow-yaml.ts";
import type { NodeInstallSchema } from "#manifests/manifest-schemas.ts";

/** The request of `kcore node install` or a `NodeInstall` manifest, under the manifest's keys. */
export type InstallRequest = { readonly node: string } & {
  readonly [Key in Exclude<keyof NodeInstallSpec, "node">]?: NodeInstallSpec[Key] | undefined;
};
type NodeInstallSpec = z.input<typeof NodeInstallSchema>["spec"];

export type StorageBackend = NonNullable<NodeInstallSpec["storageBackend"]>;

/** The values for the roster's entry of an installation; disks still by the given paths. */
export interface InstallPlan {
  readonly dc: string;
  readonly roles: readonly string[];
  readonly vars: InstallVars;
  /** Whether the operator named the system; otherwise a machine of the roster keeps its own. */
  readonly isOsNamed: boolean;
  readonly osDisk: string;
  readonly dataDisks: readonly string[];
  readonly hostname?: string;
  readonly nodeId?: string;
  readonly identityFile?: string;
}

/** The variables of a roster entry that the shipped states read; without `installOs` the present system stays. */
export type InstallVars = Readonly<Record<string, Plain>> & { readonly installOs?: string };

const devicePath = /^\/dev(?!.*\/\.\.(?:\/|$))\/[^\s]+$/;

/**
 * Checks a request, in which a flag without effect is a problem, and makes the plan. @throws KcoreError USAGE with all problems
 */
export function planInstall(request: InstallRequest): InstallPlan {
  const problems: Problem[] = [];
  const refuse = (message: string, hint: string): void => void problems.push({ code: "USAGE", message, hint });
  const { osDisk = "", dataDisks = [], joinControllers = [], runController = false, dcId = "DC1" } = request;
  if (osDisk === "") refuse("the OS disk is not named", "--os-disk /dev/sda");
  if (request.os !== undefined && request.osInstalled === true)
    refuse("--os names a system to install, and --os-installed says that there is one", "leave one of them out");
  for (const path of [osDisk, ...dataDisks].filter((disk) => disk !== ""))
    if (!devicePath.test(path)) refuse(`“${path}” is not the path of a disk`, "a path below /dev, such as /dev/sdb");
  for (const path of dataDisks.filter((disk, index) => disk === osDisk || dataDisks.indexOf(disk) !== index))
    refuse(`the disk ${path} is named twice`, "a disk has one use");
  if (!runController && joinControllers.length === 0)
    refuse("the node has no controller to belong to", "--join-controller HOST:9090, or --run-controller, or both");
  const backend = checkStorage(request, refuse);
  if (request.encryptDisks === true && dataDisks.length === 0)
    refuse("--encrypt-disks has no disk to encrypt", "it is about data disks: --data-disk /dev/sdb");
  if (request.diskUnlock !== undefined && request.encryptDisks !== true)
    refuse("--disk-unlock has no encrypted disk to unlock", "it belongs to --encrypt-disks");
  const osUnlock = checkOsUnlock(request, refuse);
  const join = joinControllers.flatMap((text) => parseJoinEndpoint(text, refuse));
  if (problems.length > 0) throw new KcoreError(problems);
  return {
    dc: dcId,
    roles: [runController ? "controller" : "worker"],
    vars: omitUndefined({
      osDisk,
      installOs: request.osInstalled === true ? undefined : (request.os ?? "debian"),
      encryptOs: request.encryptOs || undefined,
      osUnlock,
      storageBackend: backend,
      lvmVgName: request.lvmVgName,
      lvmLvPrefix: request.lvmLvPrefix,
      zfsPoolName: request.zfsPoolName,
      zfsDatasetPrefix: request.zfsDatasetPrefix,
      joinControllers: join.length > 0 ? [...new Set(join)] : undefined,
      dataDisks: dataDisks.length > 0 ? dataDisks : undefined,
      encryptDisks: request.encryptDisks || undefined,
      diskUnlock: request.diskUnlock,
      disableVxlan: request.disableVxlan || undefined,
    }),
    isOsNamed: request.os !== undefined,
    osDisk,
    dataDisks,
    ...omitUndefined({ hostname: request.hostname, nodeId: request.nodeId, identityFile: request.identityFile }),
  };
}

type RefuseRequest = (message: string, hint: string) => void;

/** The way to unlock an encrypted root. An OS disk is encrypted only when the system is installed. */
function checkOsUnlock(
  { encryptOs, os, osUnlock, osInstalled }: InstallRequest,
  refuse: RefuseRequest,
): "ssh" | undefined {
  if (encryptOs === true && osInstalled === true)
    refuse(
      "--encrypt-os has no system to make",
      "one that is installed already stays as it is: leave out one of the two",
    );
  if (encryptOs === true && os !== undefined && os !== "debian")
    refuse(`--encrypt-os is for Debian, and “${os}” makes its root itself`, "leave out one of the two");
  if (osUnlock !== undefined && encryptOs !== true)
    refuse("--os-unlock has no encrypted root to unlock", "it belongs to --encrypt-os");
  if (osUnlock === undefined || osUnlock === "ssh") return osUnlock;
  refuse(
    osUnlock === "tpm2"
      ? "no TPM unlocks a root filesystem yet: the initrd of Debian 12 does not know what systemd-cryptenroll writes"
      : `“${osUnlock}” unlocks no root filesystem`,
    "--os-unlock ssh; a TPM can open the data disks: --disk-unlock tpm2",
  );
  return undefined;
}

/** The storage backend; `--storage-backend` wins over `--data-disk-mode`. */
function checkStorage(request: InstallRequest, refuse: RefuseRequest): StorageBackend {
  const { storageBackend, dataDiskMode } = request;
  const backend = storageBackend ?? dataDiskMode ?? "filesystem";
  const belongs = [
    ["--lvm-vg-name", request.lvmVgName, "lvm"],
    ["--lvm-lv-prefix", request.lvmLvPrefix, "lvm"],
    ["--zfs-pool-name", request.zfsPoolName, "zfs"],
    ["--zfs-dataset-prefix", request.zfsDatasetPrefix, "zfs"],
  ] as const;
  for (const [name, value, needed] of belongs)
    if (value !== undefined && backend !== needed)
      refuse(`${name} means nothing with the storage backend ${backend}`, `it belongs to --storage-backend ${needed}`);
  if (request.lvmVgName !== undefined && !VolumeName.safeParse(request.lvmVgName).success)
    refuse(
      `“${request.lvmVgName}” cannot be a volume group's name`,
      "letters, digits, “_”, “.”, “+” and “-”, as lvm(8) has it",
    );
  if (request.zfsPoolName !== undefined && !PoolName.safeParse(request.zfsPoolName).success)
    refuse(
      `“${request.zfsPoolName}” cannot be a pool's name`,
      "letters, digits, “_”, “.” and “-”, a letter first, and no word of zpool's own such as mirror",
    );
  return backend;
}

function parseJoinEndpoint(text: string, refuse: RefuseRequest): readonly string[] {
  try {
    return [formatEndpoint(parseEndpoint(text))];
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    refuse(`--join-controller: ${error.message}`, "--join-controller HOST:9090");
    return [];
  }
}
