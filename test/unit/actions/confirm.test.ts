import { expect } from "chai";
import { confirmAction } from "#actions/confirm.ts";
import { KcoreError } from "#errors/problem.ts";
import { actionContext } from "#support/action-context.ts";

describe("confirm", () => {
  for (const answer of ["yes", "y", " YES ", "true"])
    it(`lets the run continue after the answer “${answer}”`, async () => {
      const context = actionContext({ ask: () => Promise.resolve(answer) });
      expect(await confirmAction.run({ message: "Go on?" }, context)).to.deep.equal({ changed: false, outputs: {} });
    });

  for (const answer of ["no", "", "yes please", "n"])
    it(`fails the run after the answer “${answer}”`, async () => {
      const context = actionContext({ ask: () => Promise.resolve(answer) });
      const error = await confirmAction.run({ message: "Go on?" }, context).catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(KcoreError).with.nested.property("problems[0].code", "CONFIRM_DENIED");
    });

  it("asks no question in a dry run, and notes the question", async () => {
    const context = actionContext({ dryRun: true });
    expect(await confirmAction.plan({ message: "Go on?" }, context)).to.deep.equal({ changed: false, outputs: {} });
    expect(context.notes).to.deep.equal(["would ask: Go on?"]);
  });
});
