import { chown, readFile, rename, stat } from "node:fs/promises";
import { formatEndpoint, parseEndpoint } from "#api/endpoint.ts";
import { ifThere, replaceFile } from "#base/file.ts";
import { emptyStore, foundStore } from "#controller/store/restore.ts";
import { KcoreError } from "#errors/problem.ts";
import { becomeOwner, notesOf, readHome, startHint, type MaintainOptions } from "./stopped-controller.ts";

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

/** Writes the sponsors into a configuration file, without its `bootstrap`: this controller founds no cluster. */
async function rewriteConfig(file: string, join: readonly string[], yaml: MaintainOptions["yaml"]): Promise<void> {
  const { bootstrap: _, ...config } = yaml.parse(await readFile(file, "utf8")) as Record<string, unknown>;
  const replication = { ...(config["replication"] as Record<string, unknown> | undefined), join };
  const { mode, uid, gid } = await stat(file);
  await replaceFile(file, yaml.print({ ...config, replication }), { mode: mode & 0o777 });
  await chown(file, uid, gid);
}
