import { realpathSync } from "node:fs";
import type { PlacedLine } from "#audit/chain.ts";
import { keptBytes, mostBytes } from "#audit/open-trail.ts";
import { readTrail, pageBytes } from "#audit/trail-files.ts";
import { trailFolder } from "#engine/run/run-trail.ts";
import { KcoreError } from "#errors/problem.ts";
import { contextFolder, findContext } from "#pki/contexts.ts";
import { escrowTrail } from "#pki/escrow.ts";
import { contextHome } from "../process/kcore-home.ts";
import { allControllers, askController } from "../controller/all-controllers.ts";
import { openCluster } from "../cluster/open-cluster.ts";
import type { ClusterFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import type { ReplyOf } from "#api/methods.ts";

/** An audit trail that can be read from here. */
export interface KnownTrail {
  /** The name in results: `runs`, `recovery keys`, or a controller's endpoint or id. */
  readonly name: string;
  /** Identifies the trail among all, also those of other clusters and projects. */
  readonly id: string;
  /** The project whose runs the trail records. */
  readonly project?: string;
  /** Bytes of newest entries that stay when the trail drops its oldest; absent: the trail drops none. */
  readonly mustKeep?: number;
  /** Set for a trail that is usually empty: results list it only if it ever had an entry. */
  readonly isRare?: true;
  /** The lines in their order. @throws KcoreError when the trail cannot be read */
  readonly lines: () => AsyncIterable<PlacedLine>;
}

export interface TrailFlags extends ClusterFlags {
  readonly runs?: boolean;
  readonly controllers?: boolean;
}

/** Codes of a trail that is not here, which is an error only if a flag names the trail. */
const absenceCodes: ReadonlySet<string> = new Set(["PROJECT_NOT_FOUND", "PKI_CONTEXT_UNKNOWN"]);

/**
 * The trails of this project's runs, of the cluster's controllers, and of accesses to recovery keys. One of the flags
 * `--runs` and `--controllers` selects only the trails that it names.
 * @throws KcoreError PROJECT_NOT_FOUND, PKI_CONTEXT_UNKNOWN when a trail that a flag names is not here, or no
 * trail at all
 */
export async function findTrails(flags: TrailFlags): Promise<readonly KnownTrail[]> {
  const { runs = false, controllers = false } = flags;
  const both = runs === controllers;
  const found: KnownTrail[] = [];
  let missing: KcoreError | undefined;
  const addTrails = async (find: () => Promise<readonly KnownTrail[]>): Promise<void> => {
    try {
      found.push(...(await find()));
    } catch (error) {
      if (!both || !(error instanceof KcoreError) || !absenceCodes.has(error.problems[0]?.code ?? "")) throw error;
      missing ??= error;
    }
  };
  if (both || runs) await addTrails(async () => [runsTrail(findProject(flags.project))]);
  if (both || controllers) await addTrails(() => controllerTrails(flags));
  if (both) await addTrails(async () => [await recoveryKeyTrail(flags)]);
  if (found.length === 0 && missing) throw missing;
  return found;
}

function runsTrail(project: string): KnownTrail {
  const folder = trailFolder(project);
  return { name: "runs", id: `runs ${realpathSync(project)}`, project, lines: () => localLines(folder) };
}

async function recoveryKeyTrail({ context }: ClusterFlags): Promise<KnownTrail> {
  const { name } = await findContext(contextHome(), context);
  const folder = escrowTrail(contextFolder(contextHome().home, name));
  return { name: "recovery keys", id: `recovery keys ${name}`, isRare: true, lines: () => localLines(folder) };
}

/** The lines of a trail on this machine. @throws KcoreError FILE_UNREADABLE */
export async function* localLines(folder: string): AsyncGenerator<PlacedLine> {
  try {
    yield* readTrail(folder);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === undefined) throw cause;
    throw new KcoreError(
      { code: "FILE_UNREADABLE", message: `the trail in ${folder} cannot be read: ${message}` },
      { cause },
    );
  }
}

async function controllerTrails(flags: ClusterFlags): Promise<readonly KnownTrail[]> {
  const cluster = await openCluster(flags);
  if (cluster.endpoints.length === 0) return [];
  const all = await allControllers(cluster);
  const named = new Set(flags.controller ?? []);
  return all
    .filter(({ endpoints }) => named.size === 0 || endpoints.some((endpoint) => cluster.endpoints.includes(endpoint)))
    .map((one) => ({
      name: one.endpoints[0] ?? one.controller.controllerId,
      id: `controller ${cluster.context} ${one.controller.controllerId}`,
      mustKeep: keptBytes,
      lines: () =>
        trailPages(one.endpoints[0] ?? one.controller.controllerId, (from) =>
          askController(one, cluster, (client) => client.call("listAudit", {}, { id: String(from) })),
        ),
    }));
}

/**
 * The lines of a controller's trail, page by page; `ask` fetches the page that begins with the entry of this number.
 * @throws KcoreError API_UNTRUSTED if a page does not advance, or the trail exceeds its limit: the controller may be in
 * wrong hands
 */
export async function* trailPages(
  controller: string,
  ask: (from: number) => Promise<ReplyOf<"listAudit">>,
): AsyncGenerator<PlacedLine> {
  let total = 0;
  for (let from: number | undefined = 1; from !== undefined;) {
    const { lines, next }: ReplyOf<"listAudit"> = await ask(from);
    const size = lines.reduce((sum, { text }) => sum + text.length, 0);
    total += size;
    // Only a full page is followed by another one.
    const isOnward = next === undefined || (next >= from + lines.length && size > pageBytes);
    if (!isOnward || total > mostBytes)
      throw new KcoreError({
        code: "API_UNTRUSTED",
        message: `the audit trail of ${controller} has no end`,
        hint: "no controller of kcore answers so: look at the machine",
      });
    yield* lines;
    from = next;
  }
}
