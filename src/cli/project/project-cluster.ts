import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { KcoreError } from "#errors/problem.ts";
import { findProject } from "./find-project.ts";
import { projectFile, readSettings } from "./project-settings.ts";

/** Records in a project the cluster that the project belongs to. */
export function nameCluster(project: string, cluster: string): Promise<void> {
  return appendFile(join(project, projectFile), clusterLine(cluster));
}

/** The text of {@link projectFile} that names the cluster. */
export function clusterLine(cluster: string): string {
  return `# The cluster that this project's machines belong to, by the name of its context.\ncluster: ${cluster}\n`;
}

/** Makes the project's cluster the context of a command, unless the command line names a context. @throws as readSettings */
export function useClusterOfProject(command: Command): void {
  const takesContext = command.options.some((option) => option.attributeName() === "context");
  if (!takesContext || command.getOptionValue("context") !== undefined) return;
  const cluster = fromProject(command.getOptionValue("project") as string | undefined, readSettings)?.cluster;
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
