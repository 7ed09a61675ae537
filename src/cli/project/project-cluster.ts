import { existsSync, readFileSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";
import { KcoreError } from "#errors/problem.ts";
import { isClusterName } from "#pki/identity.ts";
import { findProject } from "./find-project.ts";

/** The project's file with its cluster (`cluster: NAME`), whose context every command in the project uses. */
export const projectFile = "kcore.yaml";

/** The cluster that a project names; undefined if it names none. @throws KcoreError CONFIG_INVALID */
export function clusterOf(project: string): string | undefined {
  const file = join(project, projectFile);
  if (!existsSync(file)) return undefined;
  const content = parsePlainYaml(readFileSync(file, "utf8")) as { readonly cluster?: unknown } | null;
  const cluster = content?.cluster;
  if (cluster === undefined || (typeof cluster === "string" && isClusterName(cluster))) return cluster;
  throw new KcoreError({
    code: "CONFIG_INVALID",
    message: `${file}: cluster is no cluster's name`,
    hint: "cluster: NAME, as kcore config get-contexts lists it",
  });
}

/** Records in a project the cluster that the project belongs to. */
export function nameCluster(project: string, cluster: string): Promise<void> {
  return appendFile(join(project, projectFile), clusterLine(cluster));
}

/** The text of {@link projectFile} that names the cluster. */
export function clusterLine(cluster: string): string {
  return `# The cluster that this project's machines belong to, by the name of its context.\ncluster: ${cluster}\n`;
}

/** Makes the project's cluster the context of a command, unless the command line names a context. @throws KcoreError CONFIG_INVALID */
export function useClusterOfProject(command: Command): void {
  const takesContext = command.options.some((option) => option.attributeName() === "context");
  if (!takesContext || command.getOptionValue("context") !== undefined) return;
  const cluster = fromProject(command.getOptionValue("project") as string | undefined, clusterOf);
  if (cluster !== undefined) command.setOptionValueWithSource("context", cluster, "config");
}

/** The answer of `ask` for the command's project; undefined without a project that can be used. */
export function fromProject<Answer>(given: string | undefined, ask: (project: string) => Answer): Answer | undefined {
  let project: string;
  try {
    project = findProject(given);
  } catch (error) {
    // A command that needs a project refuses by itself.
    if (error instanceof KcoreError) return undefined;
    throw error;
  }
  return ask(project);
}
