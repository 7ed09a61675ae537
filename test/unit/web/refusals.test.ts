import type { ServerResponse } from "node:http";
import { expect } from "chai";
import type { ErrorCode } from "#errors/codes.ts";
import { KcoreError } from "#errors/problem.ts";
import { Routes, type FleetFeed } from "#web/routes.ts";

describe("the error pages of kcore web", () => {
  it("have status and title of the problem, until a controller answers", async () => {
    let code: ErrorCode | undefined;
    const routes = new Routes(
      {
        runStates: [],
        listRuns: () => Promise.resolve([]),
        openRun: () => Promise.reject(new KcoreError({ code: "RUN_UNKNOWN", message: "no run" })),
        report: () => Promise.resolve(""),
        openFleet: () =>
          code === undefined
            ? Promise.resolve(feed)
            : Promise.reject(new KcoreError({ code, message: "nobody is there", hint: "deploy one" })),
      },
      { project: "p", version: "1", root: "" },
    );
    const snapshot = {
      context: "lab",
      at: 0,
      asked: "a:1",
      nodes: [],
      controllers: [],
      certificates: [],
      conflicts: [],
      updates: [],
    };
    const feed: FleetFeed = {
      state: () => ({ snapshot, link: { state: "live", endpoint: "a:1" } }),
      onNews: () => undefined,
      close: () => undefined,
    };
    const ask = async (path: string): Promise<readonly [number, string]> => {
      let [status, text] = [0, ""];
      const response = {
        headersSent: false,
        writeHead: (given: number) => (status = given),
        end: (given: string) => (text = given),
      } as unknown as ServerResponse;
      await routes.answer(new URL(path, "http://x"), response, undefined);
      return [status, /<h1>(.*?)<\/h1>/.exec(text)?.[1] ?? text];
    };
    for (const [problem, ...page] of [
      ["CLUSTER_UNKNOWN", 503, "No cluster yet"],
      ["PKI_CONTEXT_UNKNOWN", 503, "No cluster yet"],
      ["API_UNREACHABLE", 503, "No controller answers"],
      ["CONFIG_INVALID", 500, "Not here"],
    ] as const) {
      code = problem;
      expect(await ask("/fleet")).to.deep.equal(page);
    }
    expect(await ask("/runs/none")).to.deep.equal([404, "Not here"]);
    code = undefined;
    expect(await ask("/fleet")).to.deep.equal([200, "lab"]);
    routes.close();
  });
});
