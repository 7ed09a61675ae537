import { expect } from "chai";
import { bastionTasks } from "#tui/tasks.ts";
import { writtenText } from "#support/written-text.ts";

describe("the tasks of the bastion", () => {
  const run = async (isSilent: boolean) => {
    const { out, take } = writtenText();
    let error: unknown;
    await bastionTasks({ out, isScreen: false, isSilent })([
      { title: "starting n1", work: () => Promise.resolve("10.77.0.11") },
      { title: "starting n2", work: () => Promise.reject(new Error("no room")) },
      { title: "starting \u001B[2Jn3", work: () => Promise.resolve() },
    ]).catch((one: unknown) => (error = one));
    return { text: take(), error };
  };

  it("are lines in a pipe: begin and result; all end before the first error is thrown", async () => {
    const { text, error } = await run(false);
    for (const part of ["❯ starting n1\n", "✔ starting n1: 10.77.0.11", "✔ starting n3"]) expect(text).to.contain(part);
    expect(text)
      .to.match(/✖ starting n2 .*no room/)
      .and.not.to.contain("\u001B");
    expect(error).to.be.an("error").with.property("message", "no room");
  });

  it("are silent for -o json, and throw all the same", async () => {
    const { text, error } = await run(true);
    expect([text, (error as Error).message]).to.deep.equal(["", "no room"]);
  });
});
