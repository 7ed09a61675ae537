import { createWriteStream } from "node:fs";
import { chown, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { loadCredentials } from "#api/credentials.ts";
import { formatEndpoint, parseEndpoint } from "#api/endpoint.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { keyRules } from "./cluster/registers.ts";
import { ownKeyFiles, readControllerConfig, type ControllerConfig } from "./controller-config.ts";
import {
  emptyStore,
  foundStore,
  repairStore,
  restampStore,
  restoreStore,
  type Repaired,
  type Replaced,
  type Replacement,
  type RestampedStore,
} from "#controller/store/restore.ts";
import { ClusterState } from "./replica/cluster-state.ts";
import { visible } from "#errors/draw.ts";
import { KcoreError } from "#errors/problem.ts";
import { ifThere, replaceFile } from "#base/file.ts";

export interface MaintainOptions {
  readonly configFile: string;
  readonly now: number;
  /** Reads and writes the configuration. */
  readonly yaml: { readonly parse: (text: string) => unknown; readonly print: (value: unknown) => string };
}

/** Options of `restore` and `repair`. */
export interface RestoreOptions extends MaintainOptions {
  /** No other controller is left to catch up with: this one serves at once. */
  readonly alone: boolean;
  /** The cluster's name as the operator typed it to confirm `alone`. */
  readonly cluster?: string;
  readonly output: "table" | "json";
}

/**
 * `kcore controller restore FILE`, on the machine of a stopped controller: replaces its state by a backup. Returns lines for
 * the operator. @throws KcoreError STORE_EMPTY, CONFIRM_DENIED, and as readControllerConfig and restoreStore do
 */
export async function restoreHere(
  file: string,
  { alone, cluster, output, ...options }: RestoreOptions,
): Promise<readonly string[]> {
  const home = await readHome(options);
  const check = await stateCheckOf(home, { from: file, alone, ...omitUndefined({ cluster }) });
  // The state's owner may not read the operator's file.
  const copy = join(home.folder, `incoming-${randomBytes(8).toString("hex")}`);
  const backup = await open(file).catch((cause: Error) => {
    throw new KcoreError({ code: "FILE_UNREADABLE", message: `${file} cannot be read: ${cause.message}` }, { cause });
  });
  // Root does nothing from here on: in another user's folder a path may become a link at any moment.
  becomeOwner(home);
  try {
    await pipeline(backup.createReadStream(), createWriteStream(copy, { flags: "wx", mode: 0o600 })).catch(
      (cause: Error) => {
        const message = `${file} cannot be copied to ${home.folder}: ${cause.message}`;
        throw new KcoreError({ code: "FILE_UNREADABLE", message }, { cause });
      },
    );
    const done = await restoreStore({ ...home, file: copy, name: file, alone, check });
    if (output === "json") return [asJson(done)];
    const { objects, nodes, controllers } = done.contents;
    const contents = `${objects} objects, ${nodes} nodes, ${controllers} controllers`;
    return [
      `restored ${done.registers} registers from ${file}: ${contents}`,
      ...notesOf(done),
      whenReady(alone),
      startHint,
    ];
  } finally {
    await rm(copy, { force: true });
  }
}

/**
 * `kcore controller repair`: keeps the intact records of a damaged state. Returns lines for the operator.
 * @throws KcoreError STORE_EMPTY, CONFIRM_DENIED, and as readControllerConfig and repairStore do
 */
export async function repairHere({ alone, cluster, output, ...options }: RestoreOptions): Promise<readonly string[]> {
  const home = await readHome(options);
  const check = await stateCheckOf(home, { from: home.folder, alone, ...omitUndefined({ cluster }) });
  becomeOwner(home);
  const done = await repairStore({ ...home, alone, check });
  const restamped = await restampStore({ ...home, alone, rules: keyRules });
  if (output === "json") return [asJson({ ...done, restamped })];
  const behind = done.behind === 0 ? "" : `, ${done.behind} of them from behind the damage`;
  return [
    `kept ${done.records} records that are whole${behind}`,
    ...lossOf(done),
    ...restampingOf(restamped),
    ...notesOf(done),
    whenReady(alone),
    startHint,
  ];
}

/**
 * Returns the check of a new state. The check refuses a state without controllers, since only `found` begins a cluster. With `alone` it
 * also refuses unless the operator typed the cluster's name, and sums up the state with which the cluster would continue.
 */
async function stateCheckOf(
  { tls }: ControllerHome,
  { from, alone, cluster }: { readonly from: string } & Pick<RestoreOptions, "alone" | "cluster">,
): Promise<NonNullable<Replacement["check"]>> {
  const name = alone ? (await loadCredentials(tls, "controller")).identity.cluster : "";
  return (entries) => {
    const { map, clock } = new ClusterState(keyRules, entries);
    const members = [...map.withPrefix("controller/")].filter(
      ({ key, text }) => text !== null && key.endsWith("/auth"),
    );
    if (members.length === 0)
      throw new KcoreError({
        code: "STORE_EMPTY",
        message: `${from} holds no cluster: no controller is on record in it`,
        hint: "kcore orchestrate deploy_node NODE gets the state from the other controllers; if none is left: kcore controller restore BACKUP",
      });
    if (!alone || cluster === name) return;
    const nodes = [...map.withPrefix("node/")].filter(({ key, text }) => text !== null && key.endsWith("/reg"));
    const last = new Date(clock.ms).toISOString();
    const names = members.map(({ key, text }) => {
      const { address = key.split("/")[1] } = JSON.parse(text ?? "{}") as { readonly address?: string };
      return visible(String(address));
    });
    throw new KcoreError({
      code: "CONFIRM_DENIED",
      message:
        `--alone goes on with the cluster “${name}” as ${from} knows it: ${members.length} controllers (${names.join(", ")}), ` +
        `${nodes.length} nodes, last changed at ${last}. Changes that only another controller has are lost. ` +
        (cluster === undefined
          ? "Nothing was changed"
          : `“${visible(cluster)}” is not the cluster's name, so nothing was changed`),
      hint: `if no other controller is left: the same command with --alone --cluster ${name}`,
    });
  };
}

function restampingOf({ writes, file }: RestampedStore): readonly string[] {
  if (file === undefined) return [];
  return [`restamped ${writes.length} writes that a clock had stamped ahead of now; they are listed in ${file}`];
}

/**
 * `kcore controller found`: the beginning of a cluster. Nothing else lets a controller with an empty state serve, so one
 * that lost its state founds no second cluster.
 * @throws KcoreError CONTROLLER_HAS_STATE, STORE_LOCKED, and as readControllerConfig does
 */
export async function foundHere(options: MaintainOptions): Promise<readonly string[]> {
  const home = await readHome(options);
  if (home.hasState)
    throw new KcoreError({
      code: "CONTROLLER_HAS_STATE",
      message: `${home.folder} holds the state of a cluster`,
      hint: "the cluster is founded already: systemctl start kcore-controller",
    });
  becomeOwner(home);
  await foundStore(home);
  return ["the next start founds a new cluster, with no nodes, approvals or revocations", startHint];
}

/**
 * `kcore controller join`: the controller begins empty and gets its state from those that it joins. `fresh` puts its former
 * state aside, and its keys, because those of a removed controller are revoked.
 * @throws KcoreError CONTROLLER_HAS_STATE without `fresh`, STORE_LOCKED, and as readControllerConfig does
 */
export async function joinHere(
  endpoints: readonly string[],
  { fresh, ...options }: MaintainOptions & { readonly fresh: boolean },
): Promise<readonly string[]> {
  const home = await readHome(options);
  const { configFile, now, yaml } = options;
  if (!fresh && home.hasState)
    throw new KcoreError({
      code: "CONTROLLER_HAS_STATE",
      message: `${home.folder} holds the state of a cluster`,
      hint: "--fresh puts it aside; a controller that was only away needs no join: it catches up by itself",
    });
  const sponsors = endpoints.map((text) => formatEndpoint(parseEndpoint(text)));
  const lines: string[] = [];
  if (sponsors.length > 0) {
    const file = home.beginning ?? configFile;
    await rewriteConfig(file, sponsors, yaml);
    lines.push(`${file} joins ${sponsors.join(", ")} now`);
  }
  if (fresh) {
    const putAside = async (path: string): Promise<void> => {
      if (
        await ifThere(
          rename(path, `${path}.${new Date(now).toISOString().replaceAll(/[:.]/g, "-")}.old`).then(() => true),
        )
      )
        lines.push(`${path} was put aside`);
    };
    for (const path of home.keyFiles) await putAside(path);
    becomeOwner(home);
    for (const path of home.rotatedKeyFiles) await putAside(path);
    lines.push(...notesOf(await emptyStore(home)));
  }
  return [
    ...lines,
    "next, on the bastion: kcore orchestrate deploy_node NODE; it registers the controller and starts it",
  ];
}

function asJson(done: Replaced & { readonly restamped?: RestampedStore }): string {
  return JSON.stringify(done, undefined, 2);
}

/** The most lost writes that are printed; the file has all of them. */
const mostShownLost = 20;

/** The lines about lost writes; damaged bytes prove nothing, so the lines name only the readable records. */
function lossOf({ lostRecords, lost, lostFile }: Repaired): readonly string[] {
  if (lostFile === undefined) return ["nothing is lost"];
  const shown = lost.slice(0, mostShownLost).map(({ key, at, writer, deleted }) => {
    const who = `${writer ?? "a controller that cannot be read"}, ${at ?? "at a time that cannot be read"}`;
    return `  ${visible(key)}${deleted ? " (deleted)" : ""}: ${visible(who)}`;
  });
  const more = lost.length - shown.length;
  return [
    `lost here: ${lostRecords} records; of what they wrote can be read:`,
    ...(shown.length > 0 ? shown : ["  nothing"]),
    ...(more > 0 ? [`  and ${more} more`] : []),
    `all of it is kept in ${lostFile}; the parts that another controller has come back when this one has started`,
  ];
}

function whenReady(alone: boolean): string {
  return alone
    ? "the controller serves as soon as it runs, without asking another one"
    : "the controller serves when it has caught up with another one; the same command with --alone if none is left";
}

const startHint = "next: systemctl start kcore-controller";

function notesOf({ aside, notes }: Replaced): readonly string[] {
  return [...notes, ...(aside === "" ? [] : [`the former state is kept in ${aside}`])];
}

/** A controller on this machine: its configuration, its state's folder and owner, and its key files. */
interface ControllerHome extends Replacement {
  readonly tls: ControllerConfig["tls"];
  readonly uid: number;
  readonly gid: number;
  readonly hasState: boolean;
  /** The configuration's `beginning` file, if it exists. */
  readonly beginning: string | undefined;
  /** The key files of the deployment. */
  readonly keyFiles: readonly string[];
  /** The key files that the controller made itself, in a folder of the state's owner. */
  readonly rotatedKeyFiles: readonly string[];
}

async function readHome({ configFile, now, yaml: { parse } }: MaintainOptions): Promise<ControllerHome> {
  const config = await readControllerConfig({ configFile, parse });
  const { dbPath: folder, tls, subCa } = config;
  const id = config.replication.controllerId ?? (await loadCredentials(tls, "controller")).identity.id;
  const found = await stat(folder).catch((cause: NodeJS.ErrnoException) => {
    throw new KcoreError(
      {
        code: "FILE_UNREADABLE",
        message: `${folder} cannot be used: ${cause.message}`,
        hint: `dbPath in ${configFile} names this folder; deploy_node makes it`,
      },
      { cause },
    );
  });
  const hasState = (await readdir(folder)).some((name) =>
    /^(?:journal|snapshot|restoring|replacing|placing)-/.test(name),
  );
  const rotated = ownKeyFiles(config);
  const deployed = [tls.certFile, tls.keyFile, subCa.certFile, subCa.keyFile];
  const keyFiles = deployed.filter((path) => !rotated.includes(path));
  const { uid, gid } = found;
  return { folder, id, now, uid, gid, tls, hasState, beginning: config.beginning, keyFiles, rotatedKeyFiles: rotated };
}

/** Drops root's rights for those of the state's owner: the controller could not read files of root. */
function becomeOwner({ uid, gid }: ControllerHome): void {
  if (process.getuid?.() !== 0 || uid === 0) return;
  process.setgroups?.([]);
  process.setgid?.(gid);
  process.setuid?.(uid);
}

/** Writes the sponsors into a configuration file, without its `bootstrap`: this controller founds no cluster. */
async function rewriteConfig(file: string, join: readonly string[], yaml: MaintainOptions["yaml"]): Promise<void> {
  const { bootstrap: _, ...config } = yaml.parse(await readFile(file, "utf8")) as Record<string, unknown>;
  const replication = { ...(config["replication"] as Record<string, unknown> | undefined), join };
  const { mode, uid, gid } = await stat(file);
  await replaceFile(file, yaml.print({ ...config, replication }), { mode: mode & 0o777 });
  await chown(file, uid, gid);
}
