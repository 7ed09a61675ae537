import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AbsolutePath, UnitName } from "../step/fields.ts";
import { Visible } from "../step/fragments/process.ts";
import { sh } from "../step/sh.ts";
import { shellText } from "../step/shell-text.ts";

/**
 * ```yaml
 * wait.for: { path: /run/kcore/ready }
 * ```
 * The check is repeated every 2 s, 30 times, unless the step has `retry`; a dry run checks once. For ports and URLs see
 * `port.open` and `http.ready`.
 */
export const waitFor = defineModule({
  name: "wait.for",
  summary: "Waits for a path, the absence of one, a command's success or an active unit.",
  alsoKnownAs: ["wait_for", "pause", "loop.until", "server.wait", "until", "retry"],
  args: z
    .strictObject({
      path: AbsolutePath.optional().describe("A path that shall be there."),
      absent: AbsolutePath.optional().describe("A path that shall not be there."),
      command: shellText(Visible.min(1)).optional().describe("A command line for /bin/sh that shall end with 0."),
      unit: UnitName.optional().describe("A systemd unit that shall be active."),
    })
    .refine((given) => Object.keys(given).length === 1, "give exactly one of path, absent, command, unit"),
  step: ({ path, absent, command, unit }) => {
    const wait = { retry: { attempts: 31, interval: 2 }, timeout: 300 } as const;
    if (path !== undefined || absent !== undefined) {
      const at = path ?? absent ?? "";
      return {
        ...wait,
        effects: {
          writes: [],
          reads: [{ is: "tree", path: at }, ...(path === undefined ? [{ is: "noFile", path: at } as const] : [])],
        },
        want: { [at]: path === undefined ? "absent" : "there" },
        probe: sh`if [ -e ${at} ] || [ -L ${at} ]; then fact ${at} there; else fact ${at} absent; fi`,
      };
    }
    if (unit !== undefined)
      return {
        ...wait,
        effects: { writes: [], reads: [{ is: "service", name: unit }] },
        want: { [unit]: "active" },
        probe: sh`state=$(systemctl show -p ActiveState -- ${unit}) && fact ${unit} "\${state#*=}"`,
        tools: [{ command: "systemctl", package: "systemd" }],
      };
    return {
      ...wait,
      effects: { writes: [], reads: [{ is: "command", text: command ?? "" }] },
      want: { "exit code": "0" },
      probe: sh`sh -c ${command ?? ":"}
fact "exit code" $?`,
    };
  },
});
