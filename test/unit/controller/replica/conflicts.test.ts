import { expect } from "chai";
import type { Json } from "#controller/replica/replica.ts";
import { connect, TestReplica, type Wire } from "#support/replica.ts";
import { Scheduler } from "../../../sim/scheduler.ts";

/** Three controllers; `c` can be cut off from the two others. */
class Three {
  readonly scheduler = new Scheduler();
  a!: TestReplica;
  b!: TestReplica;
  c!: TestReplica;
  #wires: Wire[] = [];

  static async start(): Promise<Three> {
    const all = new Three();
    all.a = new TestReplica(all.scheduler, "a");
    await all.a.register("a", "b", "c");
    all.b = new TestReplica(all.scheduler, "b", { start: "join" });
    all.c = new TestReplica(all.scheduler, "c", { start: "join" });
    connect(all.a, all.b);
    await all.heal();
    return all;
  }

  get all(): readonly TestReplica[] {
    return [this.a, this.b, this.c];
  }

  cut(): void {
    for (const wire of this.#wires.splice(0)) wire.cut();
  }

  async heal(): Promise<void> {
    this.#wires = [connect(this.a, this.c), connect(this.b, this.c)];
    await this.run(2_000);
  }

  async run(ms: number): Promise<void> {
    await this.scheduler.runUntil(this.scheduler.now + ms);
  }

  counts(): readonly number[] {
    return this.all.map(({ replica }) => replica.conflicts().length);
  }
}

const put = (at: TestReplica, key: string, value: Json): Promise<unknown> => at.replica.write([{ key, value }]);

describe("conflicts of three controllers", () => {
  it("V2: are one for each key that both sides changed, however often, on all of them as soon as they agree", async () => {
    const three = await Three.start();
    three.cut();
    for (let turn = 0; turn < 30; turn++)
      for (let key = 0; key < 20; key++) {
        await put(three.a, `k${key}`, `a ${turn}`);
        await put(three.c, `k${key}`, `c ${turn}`);
        await three.run(7);
      }
    await three.heal();
    expect(three.counts()).to.deep.equal([20, 20, 20]);
    await three.run(60_000);
    expect([three.counts(), three.all.flatMap((one) => one.alarms())]).to.deep.equal([[20, 20, 20], []]);
    const [first, ...others] = three.all.map(({ replica }) => JSON.stringify(replica.conflicts()));
    for (const other of others) expect(other).to.equal(first);
  });
});
