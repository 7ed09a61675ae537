import { projectOf, trustOfProcess } from "#engine/project/project.ts";

/** The project of a command: `--project DIR`, else the nearest one upwards. @throws KcoreError PROJECT_NOT_FOUND, PROJECT_NOT_TRUSTED */
export function findProject(given: string | undefined): string {
  return projectOf({
    cwd: process.cwd(),
    trust: trustOfProcess(process.env),
    ...(given === undefined ? {} : { project: given }),
  });
}
