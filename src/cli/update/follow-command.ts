import type { UpdateView } from "#api/update-schemas.ts";
import { KcoreError } from "#errors/problem.ts";
import { openCluster, type Cluster } from "../cluster/open-cluster.ts";
import type { ClusterFlags, ResultFormat } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { toStderr, type Say } from "../terminal/say.ts";
import type { Attendant } from "./attend.ts";
import { openAttendant } from "./attendant.ts";
import { getUpdate } from "./ask-updates.ts";
import { followUpdate, getUpdateSince, type Since } from "./follow-update.ts";
import { hooksOf } from "./hooks.ts";
import { nameOf, type NameFlags } from "./named-updates.ts";

export type FollowFlags = ClusterFlags & { readonly output: ResultFormat; readonly passphraseFile?: string };
export type AttendFlags = FollowFlags & NameFlags;

/** `-w`: follows a rollout to its end, and attends to its hooks where this is a bastion with a project. Sets the exit code. */
export async function followOne(name: string, flags: FollowFlags, since: Since = {}): Promise<void> {
  const { cluster, tellBy } = await openTelling(flags);
  const view = await getUpdateSince(cluster, name, since);
  const attend = (say: Say): Promise<Attendant | undefined> => attendIfAny(cluster, view, flags, tellBy(say));
  process.exitCode = await followUpdate(cluster, name, { ...since, output: flags.output, attend });
  cluster.close();
}

/** `kcore update cluster attend`. @throws KcoreError UPDATE_UNKNOWN, USAGE where there is nothing to do */
export async function attendUpdate(given: string | undefined, { filename, ...flags }: AttendFlags): Promise<void> {
  const name = await nameOf(given, filename ? { filename } : {});
  const { cluster, tellBy } = await openTelling(flags);
  const view = await getUpdate(cluster, name);
  if (hooksOf(view.spec).size === 0)
    throw new KcoreError({
      code: "USAGE",
      message: `“${name}” asks nothing of the bastion: neither its drain nor a gate names a state or a command`,
      hint: `kcore update cluster get ${name} -w`,
    });
  const project = findProject(flags.project);
  const attend = (say: Say): Promise<Attendant | undefined> =>
    openAttendant({ cluster, name, project, ...flags, say: tellBy(say) });
  process.exitCode = await followUpdate(cluster, name, { output: flags.output, attend });
  cluster.close();
}

/** Opens the cluster; which controllers cannot be used is told as everything else is, once `tellBy` has said how that is. */
async function openTelling(
  flags: FollowFlags,
): Promise<{ readonly cluster: Cluster; readonly tellBy: (say: Say) => Say }> {
  let say: Say = toStderr;
  const cluster = await openCluster(flags, (text) => say(text));
  return { cluster, tellBy: (other) => (say = other) };
}

/** Undefined where the update asks nothing of the bastion, there is no project, or somebody else attends to it. */
async function attendIfAny(
  cluster: Cluster,
  { name, spec }: UpdateView,
  flags: FollowFlags,
  say: Say,
): Promise<Attendant | undefined> {
  const hooks = hooksOf(spec);
  if (hooks.size === 0) return undefined;
  try {
    const project = findProject(flags.project);
    return await openAttendant({ cluster, name, project, ...flags, say });
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    say(`nobody here attends to ${[...hooks.keys()].join(", ")}: ${error.message}`);
    return undefined;
  }
}
