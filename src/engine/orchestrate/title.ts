import type { RunRequest } from "./execute.ts";

/** What a run is called: `deploy_node`, `state apply web`, `exec uname -a`, `ping`. */
export function titleOf(what: RunRequest["what"]): string {
  switch (what.kind) {
    case "orchestration":
      return what.title ?? what.name;
    case "state":
      return `state apply ${what.names.join(" ")}`;
    case "exec":
      return `exec ${what.argv.join(" ")}`;
    case "ping":
    case "facts":
    case "unlock":
      return what.kind;
  }
}
