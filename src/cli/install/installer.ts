import { KcoreError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { findIn, foldersOf, listIn } from "#engine/project/folders.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import type { InstallPlan } from "./request.ts";

/** Where installers lie: states, the project's first. */
const kind = "states/system";

/** What is to be installed is a state that there is. @throws KcoreError USAGE */
export function checkInstaller({ vars: { installOs } }: InstallPlan, project: string): void {
  if (installOs === undefined) return;
  const folders = foldersOf(kind, { project, shipped: shippedRoot() });
  if (findIn(folders, `${installOs}.yaml`)) return;
  const names = [...listIn(folders, [".yaml"]).keys()].map((file) => file.slice(0, -".yaml".length));
  throw new KcoreError({
    code: "USAGE",
    message: `nothing installs “${installOs}”: there is no ${kind}/${installOs}.yaml in this project, and none is shipped`,
    hint: suggestHint(installOs, names, `there are: ${names.join(", ")}`),
  });
}
