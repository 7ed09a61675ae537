import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { RunEventBody } from "#engine/events/event.ts";
import { NodeLogs } from "#engine/run/node-logs.ts";
import { logName, runFolder } from "#engine/run/run-folder.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("NodeLogs", () => {
  const at = folderOfEachTest("logs");

  const logged = (node: string | undefined, ...events: readonly RunEventBody[]): string => {
    const folder = runFolder(at(), "20261121-065724-2580");
    const fail = (error: unknown): never => {
      throw error;
    };
    const logs = new NodeLogs(folder, () => 0, fail);
    for (const event of events) logs.add(event);
    logs.flush({ last: true });
    return readFileSync(join(folder.path, logName(node)), "utf8").replaceAll("1970-01-01T00:00:00.000Z ", "");
  };
  const action = { stage: "tag", action: "local.command" } as const;

  it("writes the output of actions to the bastion's log, or to the log of the action's node", () => {
    const events: readonly RunEventBody[] = [
      { type: "action.started", ...action },
      { type: "action.output", ...action, stream: "out", text: "1\n2\n" },
      { type: "action.output", ...action, stream: "err", text: "no\n" },
      // prettier-ignore
      { type: "action.finished", ...action, outcome: "failed", problem: { code: "LOCAL_COMMAND_FAILED", message: "it failed" } },
    ];
    const log = "== tag (local.command)\n | 1\n | 2\n ! no\n== tag: failed\n   it failed  [LOCAL_COMMAND_FAILED]\n";
    expect(logged(undefined, ...events)).to.equal(log);
    // A node's actions stand in the node's log, also for a node called bastion.
    expect(logged("bastion", ...events.map((event) => ({ ...event, item: "bastion" }) as RunEventBody))).to.equal(log);
  });

  it("writes sent contents with their source to the node's log", () => {
    const sent = { type: "node.sent", node: "n1", name: "image", bytes: 44_000_000, duration: 5 } as const;
    expect(logged("n1", sent, { ...sent, from: "n2" })).to.equal(
      "-- sent image, 44.0 MB\n-- sent image from n2, 44.0 MB\n",
    );
  });
});
