import { mkdir } from "node:fs/promises";
import { runTasks, type RunTasks } from "#base/tasks.ts";
import { bridgeUp } from "./bridge.ts";
import { raiseWeight } from "./cgroup.ts";
import { takeDown } from "./down.ts";
import { prepareHost, raiseInotifyLimit, requireRoot } from "./prepare-host.ts";
import { prepareImages } from "./image.ts";
import { identityFileOf, makeKey } from "./ssh.ts";
import { labNode, startTask, nodeStatus, type LabNode, type LabNodeStatus, type Prepare } from "./lab-node.ts";
import { withLock } from "./lock.ts";
import { hostPackages, tpmHostPackages, vmHostPackages } from "./debian-packages.ts";
import { isRunning } from "./processes.ts";
import {
  findLabPlace,
  labNames,
  lockOfLab,
  namedPackages,
  recordPackages,
  recordLabPlace,
  type PlaceOptions,
} from "./place.ts";
import { makeRecords, readNodeRecord, readNodeRecords, type NodeRecord, type NodeSpec } from "./record.ts";
import { servePackages } from "./repository.ts";
import { labRosterText } from "./roster-text.ts";

export type { LabNode } from "./lab-node.ts";
export type { NodeSpec } from "./record.ts";

export interface LabOptions extends PlaceOptions {
  /** The mirror of Debian; default: the mirror of this machine's apt. */
  readonly mirror?: string;
  /** Names of Debian packages that nodes may install besides `servedPackages` (docs/lab.md). */
  readonly packages?: readonly string[];
  /** Runs long work and shows its progress; default: without a view. */
  readonly tasks?: RunTasks;
  /** Shows the operator a line. */
  readonly note?: (line: string) => void;
}

/** Throwaway real machines on this computer. */
export type Lab = Awaited<ReturnType<typeof openLab>>;

/** Finds a lab; nothing is made until `up`. Throws `LAB_NEEDS_ROOT`, `USAGE`. */
export async function openLab(options: LabOptions = {}) {
  const { mirror, packages: named, tasks = runTasks, note = () => undefined, ...where } = options;
  requireRoot();
  const place = await findLabPlace(where);
  const prepare: Prepare = async (nodes, work) => {
    const withVms = nodes.some(({ kind }) => kind === "vm");
    const releases = nodes.flatMap(({ release }) => (release === undefined ? [] : [release]));
    const withNix = nodes.some(({ nix = false }) => nix);
    const withZfs = nodes.some(({ zfs = false }) => zfs);
    const withTpm = nodes.some(({ tpm = false }) => tpm);
    const needed = {
      ...hostPackages,
      ...(withVms ? vmHostPackages : {}),
      ...(withTpm ? tpmHostPackages : {}),
    };
    await prepareHost(tasks, needed, (work) => withLock(place.home, "packages", 900, work));
    await raiseInotifyLimit();
    await mkdir(place.home, { recursive: true, mode: 0o700 });
    await makeKey(place);
    const packages = await namedPackages(place, named);
    const images = await prepareImages(place, { mirror, tasks, note, withNix, withVms, withZfs, packages, releases });
    return withLock(place.home, lockOfLab(place), 60, async () => {
      await bridgeUp(place);
      await recordLabPlace(place);
      await recordPackages(place, packages);
      await servePackages(place, [images.packages, ...(images.more === "" ? [] : [images.more])]);
      return work(images);
    });
  };
  return {
    name: place.name,
    /**
     * Makes and starts these nodes; before that, missing packages and images. Running nodes stay as they are. Throws as `Prepare` and
     * `LabNode`.
     */
    up: async (specs: readonly NodeSpec[]): Promise<LabNode[]> => {
      const records = await prepare(specs, (images) => makeRecords(place, specs, images));
      for (const [index, record] of records.entries()) noteDifference(record, specs[index], note);
      await raiseWeight(place.group, records.some(({ kind }) => kind === "vm") ? weights.machine : weights.fleet);
      await tasks(records.map((record) => startTask(place, record)));
      return Promise.all(records.map(async (record) => labNode(place, record, prepare, tasks)));
    },
    /** Takes these nodes away, by default all; with the last node everything else. Throws as `takeDown`. */
    down: (names?: readonly string[]) => takeDown(place, names, { tasks, note }),
    /** Throws `LAB_NODE_UNKNOWN`. */
    node: async (name: string): Promise<LabNode> => labNode(place, await readNodeRecord(place, name), prepare, tasks),
    list: async () => Promise.all((await readNodeRecords(place)).map((record) => nodeStatus(place, record))),
    /** A roster file of the running nodes. */
    roster: async () => {
      const records = await readNodeRecords(place);
      const running = await Promise.all(records.map((record) => isRunning(place, record)));
      const options = { lab: place.name, identityFile: identityFileOf(place) };
      return labRosterText(
        records.filter((_, index) => running[index]),
        options,
      );
    },
  };
}

/** CPU shares of a lab, without and with virtual machines, each of which keeps a whole core busy. A session of the host has 1,024. */
const weights = { fleet: 4096, machine: 32_768 } as const;

/** The nodes of every lab on this machine. */
export async function listLabs(home?: string): Promise<readonly (LabNodeStatus & { readonly lab: string })[]> {
  const labs = (await labNames(home)).map(async (lab) => {
    const place = await findLabPlace({ name: lab, ...(home === undefined ? {} : { home }) });
    const records = await readNodeRecords(place);
    return Promise.all(records.map(async (record) => ({ lab, ...(await nodeStatus(place, record)) })));
  });
  return (await Promise.all(labs)).flat();
}

/** Notes that an existing node stays as it is, if the spec asks for something else. */
function noteDifference(record: NodeRecord, spec: NodeSpec | undefined, note: (line: string) => void): void {
  const shape = ({ kind, disks, zfs = false, live = false, tpm = false }: NodeSpec): string =>
    `${live ? "live " : ""}${kind} with disks ${disks.join(" ") || "none"}${zfs ? " and ZFS" : ""}${tpm ? " and a TPM" : ""}`;
  if (!spec || shape(spec) === shape(record)) return;
  note(`${record.name} is there already, ${shape(record)}; take it down first to change that`);
}
