import { expect } from "chai";
import { Questions } from "#engine/run/questions.ts";

describe("questions of a run", () => {
  it("have unique ids, also in a resumed run", async () => {
    const ids: string[] = [];
    const make = (earlierCount: number) => {
      const questions: Questions = new Questions({
        emit: (event) => {
          if (event.type !== "question.asked") return;
          ids.push(event.question.id);
          setImmediate(() => questions.answer(event.question.id, "yes", "me"));
        },
        mayBeAnswered: () => true,
        onSecret: () => undefined,
        stopped: new AbortController().signal,
        patience: 60_000,
        earlierCount,
      });
      return questions;
    };
    const question = { kind: "confirm", text: "Go on?", secret: false } as const;
    const first = make(0);
    expect([await first.ask(question), await first.ask(question)]).to.deep.equal(["yes", "yes"]);
    await make(2).ask(question);
    expect(new Set(ids).size).to.equal(3);
  });
});
