import { existsSync, readFileSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";
import { KcoreError } from "#errors/problem.ts";
import { isClusterName } from "#pki/identity.ts";
import { findProject } from "./find-project.ts";

/** Where a project names its cluster, and with it the context of every command in it: `cluster: NAME`. */
export const projectFile = "kcore.yaml";

/** The cluster that a project names, if it does. @throws KcoreError CONFIG_INVALID */
export function clusterOf(project: string): string | undefined {
  const file = join(project, projectFile);
  if (!existsSync(file)) return undefined;
  const told = parsePlainYaml(readFileSync(file, "utf8")) as { readonly cluster?: unknown } | null;
  const cluster = told?.cluster;
  if (cluster === undefined || (typeof cluster === "string" && isClusterName(cluster))) return cluster;
  throw new KcoreError({
    code: "CONFIG_INVALID",
    message: `${file}: cluster is no cluster's name`,
    hint: "cluster: NAME, as kcore config get-contexts lists it",
  });
}

/** Writes into a project which cluster it is of. */
export function nameCluster(project: string, cluster: string): Promise<void> {
  return appendFile(join(project, projectFile), clusterLine(cluster));
}

export function clusterLine(cluster: string): string {
  return `# The cluster that this project's machines belong to, by the name of its context.\ncluster: ${cluster}\n`;
}

/** Lets a command be about its project's cluster, unless it names another context. @throws KcoreError CONFIG_INVALID */
export function useClusterOfProject(command: Command): void {
  const takesContext = command.options.some((option) => option.attributeName() === "context");
  if (!takesContext || command.getOptionValue("context") !== undefined) return;
  const cluster = ownProject(command.getOptionValue("project") as string | undefined, clusterOf);
  if (cluster !== undefined) command.setOptionValueWithSource("context", cluster, "config");
}

/** What `ask` says of the command's project; undefined where there is none. */
export function ownProject<Said>(given: string | undefined, ask: (project: string) => Said): Said | undefined {
  let project: string;
  try {
    project = findProject(given);
  } catch (error) {
    // Who needs a project says so.
    if (error instanceof KcoreError) return undefined;
    throw error;
  }
  return ask(project);
}
