import type { StepData } from "./define.ts";
import { folderOf, ownersOf, type Reach, type Thing } from "./reach.ts";

/** What a step says of itself by its data. */
export function reachOfData(data: StepData): Reach {
  const { path } = data;
  const above: readonly Thing[] = "makeDirs" in data && data.makeDirs ? [{ is: "parents", path }] : [];
  switch (data.kind) {
    case "absent":
      return {
        changes: [{ is: "tree", path }],
        restsOn: [
          { is: "tree", path },
          { is: "noFile", path },
        ],
      };
    case "symlink":
      return { changes: [{ is: "path", path }, ...above], restsOn: [{ is: "path", path }] };
    case "file":
      return {
        changes: [{ is: "path", path }, ...above],
        restsOn: [{ is: "path", path, owner: data.owner }, ...ownersOf(data)],
      };
    case "directory":
      return {
        changes: [folderOf(data), ...above],
        restsOn: [{ is: "path", path, owner: data.owner }, ...ownersOf(data)],
      };
  }
}
