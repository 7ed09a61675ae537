import { projectOf, trustOfProcess } from "#engine/project/project.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { KcoreError } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";

/** The project of a command: `--project DIR`, else the nearest one upwards. @throws KcoreError PROJECT_NOT_FOUND, PROJECT_NOT_TRUSTED */
export function findProject(given: string | undefined): string {
  return projectOf({ cwd: process.cwd(), trust: trustOfProcess(process.env), ...omitUndefined({ project: given }) });
}

/** The project; undefined outside of one, unless `given` names it. @throws KcoreError as findProject */
export function projectIfAny(given: string | undefined): string | undefined {
  try {
    return findProject(given);
  } catch (error) {
    if (given === undefined && error instanceof KcoreError && error.problems[0]?.code === "PROJECT_NOT_FOUND")
      return undefined;
    throw error;
  }
}

/** The places of states, orchestrations and modules: the project, if there is one, and the shipped files. */
export function placesOf(project: string | undefined) {
  return { project, shipped: shippedRoot(), trust: trustOfProcess(process.env) };
}
