import { expect } from "chai";
import { showAnswers } from "#cli/adhoc/answers.ts";
import type { RunEvent } from "#engine/events/event.ts";

describe("the output of kcore exec", () => {
  it("is escaped for CI systems line by line with node names, and is raw for a single node", () => {
    const [lines, written]: [string[], (string | Uint8Array)[]] = [[], []];
    const stream = {
      tell: (text: string) => void lines.push(text),
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
    expect([lines.join(""), written]).to.deep.equal(["n1  ##[error]\nn1  b\n", []]);
    answer(["n1"]);
    expect(written).to.deep.equal(["##[error]\nb"]);
  });
});
