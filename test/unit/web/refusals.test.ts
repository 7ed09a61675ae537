import type { ServerResponse } from "node:http";
import { expect } from "chai";
import type { ErrorCode } from "#errors/codes.ts";
import { KcoreError } from "#errors/problem.ts";
import { Routes, type FleetFeed } from "#web/routes.ts";

describe("what the pages refuse", () => {
  it("V8: is told as what it is, and no longer once the first controller answers", async () => {
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
    code = "CLUSTER_UNKNOWN";
    expect(await ask("/fleet")).to.deep.equal([503, "No cluster yet"]);
    code = "PKI_CONTEXT_UNKNOWN";
    expect(await ask("/fleet")).to.deep.equal([503, "No cluster yet"]);
    code = "API_UNREACHABLE";
    expect(await ask("/fleet")).to.deep.equal([503, "No controller answers"]);
    code = "CONFIG_INVALID";
    expect(await ask("/fleet")).to.deep.equal([500, "Not here"]);
    expect(await ask("/runs/none")).to.deep.equal([404, "Not here"]);
    code = undefined;
    expect(await ask("/fleet")).to.deep.equal([200, "lab"]);
    routes.close();
  });
});
