import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { NodeView } from "#api/schemas.ts";
import { startCrowd } from "#support/agent-crowd.ts";
import type { AgentCrowd } from "#support/agent-crowd.ts";
import { createTestCluster } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { startControllers } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";
import { hangLimit } from "#support/limit.ts";
import { mostWithin } from "#support/moments.ts";

/**
 * `KCORE_AGENTS=1000` is the fleet of F-27 with the usual heartbeat of 15 s. Fewer agents beat more often, so that about as
 * many connections come in a second; 200 of 1,000 beating every 15 s are as much as so many of these.
 */
const count = Number(process.env["KCORE_AGENTS"] ?? "150");
const heartbeatMs = Math.min(15_000, Math.max(4_500, 15 * count));
const allowed = 200 * (count / 1000) * (15_000 / heartbeatMs);

describe("many agents and all their controllers", () => {
  let cluster: TestCluster;
  let controllers: readonly TestController[] = [];
  let stop = (): Promise<void> => Promise.resolve();
  let crowd: AgentCrowd | undefined;

  beforeEach(async () => {
    cluster = await createTestCluster();
    const config = (): object => ({ requireManualApproval: true });
    ({ controllers, stop } = await startControllers(cluster, 3, { processes: true, config }));
  });
  afterEach(async () => {
    await crowd?.end();
    await stop();
    await cluster.remove();
  });

  const nodesAt = async ({ operator }: TestController): Promise<readonly NodeView[]> =>
    (await operator.call("listNodes", {})).nodes;
  /** Waits until a controller says so of all nodes; gives how long that took. */
  const untilAll = async (holds: (node: NodeView) => boolean, at: TestController): Promise<number> => {
    const began = Date.now();
    for (;;) {
      const nodes = await nodesAt(at).catch(() => []);
      const held = nodes.filter(holds).length;
      if (held === count) return Date.now() - began;
      if (Date.now() - began > hangLimit)
        throw new Error(`only ${held} of ${nodes.length}: ${JSON.stringify((await crowd?.report())?.messages)}`);
      await sleep(1_000);
    }
  };

  it("F-27: come back without a herd, and none needs a new approval", async () => {
    const started = Date.now();
    crowd = await startCrowd(cluster, controllers, {
      count,
      processes: Math.ceil(count / 250),
      config: { heartbeatIntervalSecs: heartbeatMs / 1000 },
    });
    const [first] = controllers as [TestController];
    await untilAll(() => true, first);
    for (const id of crowd.ids) await first.operator.call("approveNode", {}, { id });
    await untilAll(({ status }) => status === "ready", first);
    const before = await crowd.report();

    await Promise.all(controllers.map((controller) => controller.stop("SIGKILL")));
    // The worst time to be away: by then most agents have noticed, and few wait for long already.
    await sleep((2 / 3) * heartbeatMs);
    const back = Date.now();
    // On a busy machine they take longer than a daemon usually may.
    await Promise.allSettled(controllers.map((controller) => controller.start()));
    const took = await untilAll(({ status }) => status === "ready", first);
    for (const other of controllers) await untilAll(({ status }) => status === "ready", other);
    const nodes = await nodesAt(first);
    const after = await crowd.report();

    const returned = after.connections.filter((at) => at >= back);
    const most = mostWithin(returned, 1_000);
    if (process.env["KCORE_AGENTS"] !== undefined)
      console.log(
        `${count} agents: all ready ${took} ms after the restart, ${returned.length} connections, at most ${most} a second, ${after.lateMs} ms late (start: ${mostWithin(before.connections, 1_000)})`,
        { started: before.messages, returned: after.messages, seconds: (Date.now() - started) / 1000 },
      );
    // A driver that was late did in one second what was due in more.
    expect(most, "new connections in a second").to.be.at.most(allowed * (1 + after.lateMs / 1000));
    expect(nodes.every(({ approval }) => approval === "approved")).to.equal(true);
    const pending = ([message]: readonly [string, number]): boolean => /PENDING|UNREGISTERED|UNKNOWN/.test(message);
    expect(Object.entries(after.messages).filter(pending)).to.deep.equal(
      Object.entries(before.messages).filter(pending),
    );
  });
});
