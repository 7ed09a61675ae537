import { expect } from "chai";
import { showAnswers } from "#cli/adhoc/answers.ts";
import { showModule } from "#cli/modules/show-module.ts";
import { defineModule } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import type { RunEvent } from "#engine/events/event.ts";
import { z } from "zod";

/** The output of `work` on this process's stdout, with these environment variables. */
async function said(env: Readonly<Record<string, string>>, work: () => Promise<void>): Promise<string> {
  const [write, before] = [process.stdout.write.bind(process.stdout), { ...process.env }];
  let text = "";
  process.stdout.write = (some: string | Uint8Array) => ((text += String(some)), true);
  Object.assign(process.env, env);
  try {
    await work();
  } finally {
    process.stdout.write = write;
    process.env = before;
  }
  return text;
}

describe("S12: what nodes and modules say", () => {
  it("goes line by line through what knows of a CI, and as it is where one node alone answers", () => {
    const [told, written]: [string[], (string | Uint8Array)[]] = [[], []];
    const stream = {
      tell: (text: string) => void told.push(text),
      write: (text: string | Uint8Array) => void written.push(text),
      isScreen: false,
    };
    const answer = (nodes: readonly string[]) => {
      const answers = showAnswers({ out: stream, err: stream, group: false });
      answers.draw({ type: "run.started", nodes } as unknown as RunEvent);
      answers.draw({
        type: "step.output",
        node: "n1",
        step: "a",
        stream: "out",
        text: "##[error]\nb",
      } as unknown as RunEvent);
      answers.flush();
    };
    answer(["n1", "n2"]);
    expect([told.join(""), written]).to.deep.equal(["n1  ##[error]\nn1  b\n", []]);
    answer(["n1"]);
    expect(written).to.deep.equal(["##[error]\nb"]);
  });

  it("drives no terminal and no runner of GitHub where a module is explained", async () => {
    const module = defineModule({
      name: "site.x",
      summary: "\u001b[2Ja\n::error::b ##[group]c",
      args: z.strictObject({ a: z.string().optional().describe("\u009b2J") }),
      step: () => ({ want: {}, probe: sh`:` }),
    });
    const known = {
      names: ["site.x"],
      all: () => Promise.resolve([module]),
      load: () => Promise.resolve(module),
      example: () => "\u001b]0;x\u0007site.x: {}",
    } as unknown as Parameters<typeof showModule>[0];
    const text = await said({ GITHUB_ACTIONS: "true" }, () => showModule(known, "site.x", "table"));
    // oxlint-disable-next-line no-control-regex -- finding control characters is the purpose
    expect(text).not.to.match(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]|##\[|^\s*::/m);
  });
});
