import { createWriteStream, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { loadCredentials } from "#api/credentials.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { reportingBytes, runTask, type RunTasks, type SayProgress } from "#base/tasks.ts";
import { formatBytes } from "#base/units.ts";
import {
  repairStore,
  restampStore,
  restoreStore,
  type Repaired,
  type Replaced,
  type Replacement,
  type RestampedStore,
} from "#controller/store/restore.ts";
import { visible } from "#errors/draw.ts";
import { KcoreError } from "#errors/problem.ts";
import { keyRules } from "./cluster/registers.ts";
import { ClusterState } from "./replica/cluster-state.ts";
import {
  becomeOwner,
  notesOf,
  readHome,
  startHint,
  type ControllerHome,
  type MaintainOptions,
} from "./stopped-controller.ts";

/** Options of `restore` and `repair`. */
export interface RestoreOptions extends MaintainOptions {
  /** No other controller is left to catch up with: this controller serves at once. */
  readonly alone: boolean;
  /** The cluster's name as the operator typed it to confirm `alone`. */
  readonly cluster?: string;
  readonly output: "table" | "json";
  /** Shows the progress. */
  readonly tasks: RunTasks;
}

/**
 * `kcore controller restore FILE`, on the machine of a stopped controller: replaces its state by a backup. Returns lines for
 * the operator. @throws KcoreError STORE_EMPTY, CONFIRM_DENIED, and as readControllerConfig and restoreStore do
 */
export async function restoreHere(
  file: string,
  { alone, cluster, output, tasks, ...options }: RestoreOptions,
): Promise<readonly string[]> {
  const home = await readHome(options);
  const check = await stateCheckOf(home, { from: file, alone, ...omitUndefined({ cluster }) });
  // The state's owner is perhaps unable to read the operator's file, so root opens the file and the owner copies it.
  const copy = join(home.folder, `incoming-${randomBytes(8).toString("hex")}`);
  const backup = await open(file).catch((cause: Error) => {
    throw new KcoreError({ code: "FILE_UNREADABLE", message: `${file} cannot be read: ${cause.message}` }, { cause });
  });
  const { size } = await backup.stat();
  const copyBackup = async (say: SayProgress): Promise<void> => {
    // From here on kcore has the rights of the state's owner, since in another user's folder a path can become a link at any
    // moment. kcore gives up root's rights no earlier: the task's view loads files that the owner is perhaps unable to read.
    becomeOwner(home);
    const chunks = reportingBytes(backup.createReadStream(), say, size);
    await pipeline(chunks, createWriteStream(copy, { flags: "wx", mode: 0o600 })).catch((cause: Error) => {
      const message = `${file} cannot be copied to ${home.folder}: ${cause.message}`;
      throw new KcoreError({ code: "FILE_UNREADABLE", message }, { cause });
    });
  };
  const remove = (): void => rmSync(copy, { force: true });
  // Ctrl-C in a task ends the process without `finally`, so the copy is removed at exit, too.
  process.once("exit", remove);
  try {
    await runTask(tasks, `copying ${file} to ${home.folder}`, copyBackup, () => formatBytes(size));
    const done = await runTask(tasks, `replacing the state in ${home.folder}`, () =>
      restoreStore({ ...home, file: copy, name: file, alone, check }),
    );
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
    process.off("exit", remove);
    remove();
  }
}

/**
 * `kcore controller repair`: keeps the intact records of a damaged state, and stamps writes anew that a clock stamped ahead of now.
 * Returns lines for the operator. @throws KcoreError STORE_EMPTY, CONFIRM_DENIED, and as readControllerConfig, repairStore and
 * restampStore do
 */
export async function repairHere({
  alone,
  cluster,
  output,
  tasks,
  ...options
}: RestoreOptions): Promise<readonly string[]> {
  const home = await readHome(options);
  const check = await stateCheckOf(home, { from: home.folder, alone, ...omitUndefined({ cluster }) });
  const done = await runTask(tasks, `recovering what is intact in ${home.folder}`, () => {
    becomeOwner(home);
    return repairStore({ ...home, alone, check });
  });
  const restamped = await runTask(tasks, "looking for writes that a clock stamped ahead of now", () =>
    restampStore({ ...home, alone, rules: keyRules }),
  );
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
 * Returns the check of a new state. The check refuses a state without controllers, since only `kcore controller found` begins a
 * cluster. With `alone` the check also refuses unless the operator typed the cluster's name, and sums up the state with which the
 * cluster would continue.
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

function asJson(done: Replaced & { readonly restamped?: RestampedStore }): string {
  return JSON.stringify(done, undefined, 2);
}

/** The maximum number of lost writes that are printed; the file has all of them. */
const maxShownLost = 20;

/** The lines about lost writes; damaged bytes prove nothing, so the lines name only the readable records. */
function lossOf({ lostRecords, lost, lostFile }: Repaired): readonly string[] {
  if (lostFile === undefined) return ["nothing is lost"];
  const shown = lost.slice(0, maxShownLost).map(({ key, at, writer, deleted }) => {
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
