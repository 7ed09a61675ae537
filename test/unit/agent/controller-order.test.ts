import { expect } from "chai";
import { controllerRank, isTimeToReturn } from "#agent/controller-order.ts";
import type { ApiClient } from "#api/client.ts";
import { askInTurn, type Controllers } from "#api/ask-in-turn.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import { KcoreError } from "#errors/problem.ts";
import { seededRandom } from "#support/random.ts";

const endpoints = [1, 2, 3].map((index) => `192.0.2.${index}:9090`);

describe("the order of an agent's controllers", () => {
  /** The controllers of a node that learns others, with those that answer. */
  const controllersOf = (node: number, answering: ReadonlySet<string>, given = endpoints): Controllers =>
    askInTurn(
      { endpoints: given, rank: controllerRank({ learnControllers: true }, `node-${node}`), isPatient: false },
      {
        connect: (endpoint) =>
          ({
            endpoint: parseEndpoint(endpoint),
            call: () =>
              answering.has(endpoint)
                ? Promise.resolve({})
                : Promise.reject(new KcoreError({ code: "API_UNREACHABLE", message: endpoint })),
          }) as unknown as ApiClient,
        monotonic: () => 0,
        sleep: () => Promise.resolve(),
      },
    );
  const ask = (one: Controllers): Promise<unknown> => one.ask((client) => client.call("health", {}));
  const countAt = (all: readonly Controllers[]): readonly number[] =>
    endpoints.map((endpoint) => all.filter((one) => one.current() === endpoint).length);

  it("spreads 3,000 nodes evenly, those of a lost controller over the others, and back when it returns", async () => {
    const answering = new Set(endpoints);
    const all = Array.from({ length: 3_000 }, (_, node) => controllersOf(node, answering));
    const asked = async (): Promise<readonly number[]> => {
      await Promise.all(all.map(ask));
      return countAt(all);
    };
    for (const count of await asked()) expect(count).to.be.within(900, 1_100);
    answering.delete(endpoints[0] ?? "");
    const [none, ...others] = await asked();
    expect(none).to.equal(0);
    for (const count of others) expect(count).to.be.within(1_400, 1_600);
    answering.add(endpoints[0] ?? "");
    expect((await asked())[0]).to.equal(0);
    for (const one of all) if (!one.isAtFirst()) one.beginWithFirst();
    for (const count of await asked()) expect(count).to.be.within(900, 1_100);
  });

  it("takes controllers that the node learns of later into the same order", () => {
    const [first = "", ...others] = endpoints;
    for (let node = 0; node < 50; node++) {
      const late = controllersOf(node, new Set(), [first]);
      expect(late.learn(others)).to.deep.equal(others);
      expect(late.endpoints).to.deep.equal(controllersOf(node, new Set()).endpoints);
    }
  });

  it("is the operator's if the configuration names the controllers, and begins with controllerAddr", () => {
    expect(controllerRank({ learnControllers: false }, "n")).to.equal(undefined);
    const rank = controllerRank({ learnControllers: true, controllerAddr: "192.0.2.3" }, "n");
    expect(endpoints.toSorted((a, b) => ((rank?.(a) ?? "") < (rank?.(b) ?? "") ? -1 : 1))[0]).to.equal(endpoints[2]);
  });

  it("brings 3,334 agents back to a controller over minutes, at most 25 in a second", () => {
    const random = seededRandom(1);
    const seconds = new Map<number, number>();
    for (let node = 0; node < 3_334; node++) {
      let at = 15 * random();
      while (!isTimeToReturn(15_000, random)) at += 15;
      const second = Math.floor(at);
      seconds.set(second, (seconds.get(second) ?? 0) + 1);
    }
    expect(Math.max(...seconds.values())).to.be.at.most(25);
    expect(Math.max(...seconds.keys())).to.be.within(600, 3_600);
  });
});
