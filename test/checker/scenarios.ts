import { setTimeout as sleep } from "node:timers/promises";
import { emptyFolder, flipByte } from "./damage.ts";
import { port, untilTrue, type Cluster, type Controller } from "./controllers.ts";
import { datacenters, whileCut } from "./faults.ts";
import type { Cut, History } from "./history.ts";
import { judge, type Violation } from "./judge.ts";
import { lookAt, timeToAgree } from "./observe.ts";
import { Workload } from "./workload.ts";

/** One of the findings V1 to V6, played on a cluster of its own. */
export interface Scenario {
  readonly name: string;
  readonly run: (cluster: Cluster) => Promise<readonly Violation[]>;
}

type Four = readonly [Controller, Controller, Controller, Controller];

/** The state of a scenario in play. */
class Play {
  readonly cluster: Cluster;
  readonly work: Workload;
  readonly #cuts: Cut[] = [];
  readonly #agreed: number[] = [];

  constructor(cluster: Cluster, number: number) {
    this.cluster = cluster;
    this.work = new Workload(number);
  }

  get four(): Four {
    return this.cluster.controllers as unknown as Four;
  }

  async agree(): Promise<number | undefined> {
    const took = await timeToAgree(this.cluster.controllers);
    if (took !== undefined) this.#agreed.push(performance.now());
    return took;
  }

  /** Works while no packets pass between the sides. */
  async cut(sides: readonly (readonly number[])[], run: () => Promise<void>): Promise<void> {
    await whileCut({ controllers: this.cluster.controllers, cuts: this.#cuts }, { sides }, run);
  }

  /** Waits for agreement, then judges all four controllers. */
  async verdict(more: Partial<History> = {}): Promise<readonly Violation[]> {
    const healedMs = await this.agree();
    const { work, cluster } = this;
    const views = await Promise.all(
      cluster.controllers.map((each) => lookAt(each, work.isPrepared ? [work.node] : [])),
    );
    const { writes, falselyHealthy, episode } = work;
    return judge({
      episode,
      writes,
      cuts: this.#cuts,
      agreed: this.#agreed,
      setBacks: [],
      views,
      healedMs,
      falselyHealthy,
      ...more,
    });
  }
}

function scenario(name: string, number: number, play: (play: Play) => Promise<readonly Violation[]>): Scenario {
  return { name, run: (cluster) => play(new Play(cluster, number)) };
}

type Decision = readonly [at: 0 | 2, value: "approved" | "rejected"];

/** Makes decisions before a cut and during it. */
function decisions(number: number, name: string, before: Decision, during: readonly Decision[]): Scenario {
  return scenario(`V1: ${name}`, number, async (play) => {
    await play.work.prepare(play.four[0]);
    const decide = async ([at, value]: Decision): Promise<void> => void (await play.work.decide(play.four[at], value));
    await decide(before);
    await play.agree();
    await play.cut(datacenters, async () => {
      for (const each of during) await decide(each);
    });
    return play.verdict();
  });
}

const lone = [[3], [0, 1, 2]] as const;

/** One controller alone has 100 writes, a byte of one is flipped, and it is repaired: at most this write is lost, and it is named. */
function damaged(number: number, name: string, which: number, isAlone: boolean): Scenario {
  return scenario(name, number, async (play) => {
    const [, , , last] = play.four;
    const found: Violation[] = [];
    const toldLost = new Set<string>();
    const body = async (): Promise<void> => {
      for (let index = 1; index <= 100; index++) await play.work.put(last, `Damaged/n${index}`);
      if (!isAlone) await play.agree();
      await last.end("SIGKILL");
      // A value is JSON within JSON.
      await flipByte(last.db, `v${number}.${which}\\"`);
      // The controller may refuse to start, or start and raise an alarm; it must not continue silently.
      const log = last.log().length;
      if (await last.start(true)) {
        const { body: status } = await last.client.get("/v1/replication");
        if (((status["alarms"] ?? []) as readonly unknown[]).length === 0)
          found.push({ rule: "lost", text: "a flipped byte, and neither a refusal nor an alarm" });
      } else if (!/STORE_/.test(last.log().slice(log)))
        found.push({ rule: "lost", text: `it ended without saying why: ${last.log().slice(log)}` });
      await last.end("SIGTERM");
      const { code, output } = await last.command(["controller", "repair"]);
      if (code !== 0) found.push({ rule: "lost", text: `repair ended with ${code}: ${output}` });
      for (const { key } of play.work.writes) if (new RegExp(`\\b${key}\\b`).test(output)) toldLost.add(key);
      if (toldLost.size > (isAlone ? 1 : 100))
        found.push({ rule: "lost", text: `repair gave up ${toldLost.size} writes: ${output}` });
      await last.start();
    };
    if (isAlone) await play.cut(lone, body);
    else await body();
    return [...found, ...(await play.verdict({ toldLost: isAlone ? toldLost : new Set() }))];
  });
}

export const scenarios: readonly Scenario[] = [
  decisions(
    1_001,
    "approved; cut; rejected here, rejected and approved there",
    [0, "approved"],
    [
      [0, "rejected"],
      [2, "rejected"],
      [2, "approved"],
    ],
  ),
  decisions(
    1_002,
    "approved; cut; rejected and approved there, rejected here last",
    [0, "approved"],
    [
      [2, "rejected"],
      [2, "approved"],
      [0, "rejected"],
    ],
  ),
  decisions(
    1_003,
    "rejected; cut; approved there, rejected again here",
    [0, "rejected"],
    [
      [2, "approved"],
      [0, "rejected"],
    ],
  ),
  scenario("V2: 20 keys, one writer a side, one controller cut off", 2_001, async (play) => {
    const [first, , third] = play.four;
    await play.cut([[0], [1, 2, 3]], async () => {
      const end = performance.now() + 3_000;
      const writeAll = async (at: Controller): Promise<void> => {
        for (let turn = 0; turn < 20 || performance.now() < end; turn++) await play.work.put(at, `Two/k${turn % 20}`);
      };
      await Promise.all([writeAll(first), writeAll(third)]);
    });
    const atOnce = await play.verdict();
    await sleep(3_000);
    const later = await play.verdict();
    const counts = await Promise.all(play.four.map(async (each) => (await lookAt(each, [])).conflicts.length));
    const wrong = counts.some((count) => count !== 20);
    return [
      ...atOnce,
      ...later,
      ...(wrong ? [{ rule: "conflict undue" as const, text: `20 are due; listed are ${counts.join(", ")}` }] : []),
    ];
  }),
  scenario("V3: the founder's folder is emptied", 3_001, async (play) => {
    const [founder] = play.four;
    for (let index = 0; index < 20; index++) await play.work.put(founder, `Founded/n${index}`);
    await play.agree();
    await founder.end("SIGKILL");
    await emptyFolder(founder.db);
    await founder.start(true);
    const found: Violation[] = [];
    const until = performance.now() + 5_000;
    for (let turn = 0; performance.now() < until; turn++) {
      const { body } = await founder.client.get("/v1/objects");
      const objects = (body["objects"] ?? []) as readonly unknown[];
      const outcome = await play.work.put(founder, `Second/n${turn}`);
      const { body: how } = await founder.client.get("/readyz");
      if (outcome !== "ok" && how["ready"] === true)
        found.push({ rule: "falsely healthy", text: "it takes no writes and says that it is ready" });
      if (outcome === "ok" && objects.length < 20) {
        found.push({
          rule: "lost",
          text: `it took a write and held ${objects.length} of 20 objects: it founded a second cluster`,
        });
        break;
      }
      await sleep(50);
    }
    // The operator deploys the controller again, which tells it of the others.
    await founder.end();
    await founder.configure({ rejoin: play.four.slice(1).map(({ host }) => `${host.address}:${port}`) });
    await founder.start();
    const isBack = async (): Promise<boolean> => (await founder.client.get("/readyz")).body["ready"] === true;
    await untilTrue("the founder is back in its cluster", isBack);
    return [...found, ...(await play.verdict())];
  }),
  scenario("V4: cut off with its clock an hour ahead for 3 s", 4_001, async (play) => {
    const [, , , last] = play.four;
    const writeFor = async (ms: number): Promise<number> => {
      let taken = 0;
      for (const end = performance.now() + ms; performance.now() < end; await sleep(20))
        if ((await play.work.put(last, `Jumped/n${taken % 50}`)) === "ok") taken++;
      return taken;
    };
    await play.cut(lone, async () => {
      // The controller gives its peers up, and then has no source of time.
      const isAlone = async (): Promise<boolean> => {
        const { body } = await last.client.get("/v1/replication");
        return ((body["peers"] ?? []) as readonly { state: string }[]).every(({ state }) => state !== "connected");
      };
      await untilTrue("it has given its peers up", isAlone);
      await sleep(3_000);
      await last.setClock("+3600s");
      await writeFor(3_000);
      await last.setClock("+0s");
      await writeFor(1_000);
    });
    const found: Violation[] = [];
    if ((await writeFor(5_000)) === 0) {
      await last.end("SIGTERM");
      const { output } = await last.command(["controller", "repair"]);
      await last.start();
      const takesAgain = untilTrue("it takes a write", async () => (await writeFor(1_000)) > 0);
      if (!(await takesAgain.catch(() => false)))
        found.push({ rule: "falsely healthy", text: `it takes no writes, after repair either: ${output}` });
    }
    return [...found, ...(await play.verdict())];
  }),
  damaged(5_001, "V5: a flipped byte amid 100 writes that nobody else has", 50, true),
  damaged(5_002, "V5: a flipped byte amid 100 writes that the others have", 50, false),
  damaged(6_001, "V6: a flipped byte in the last record", 100, true),
];
