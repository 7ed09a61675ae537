import { stripVTControlCharacters } from "node:util";
import { expect } from "chai";
import type { SayProgress } from "#base/tasks.ts";
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

  it("are lines with begin and result in a pipe; all end before the first error is thrown", async () => {
    const { text, error } = await run(false);
    for (const part of ["❯ starting n1\n", "✔ starting n1: 10.77.0.11", "✔ starting n3"]) expect(text).to.contain(part);
    expect(text)
      .to.match(/✖ starting n2 .*no room/)
      .and.not.to.contain("\u001B");
    expect(error).to.be.an("error").with.property("message", "no room");
  });

  it("are silent for -o json, but throw errors", async () => {
    const { text, error } = await run(true);
    expect([text, (error as Error).message]).to.deep.equal(["", "no room"]);
  });

  it("throw the error of the first failed task in the list, also if another failed earlier", async () => {
    const { out } = writtenText();
    const late = Promise.withResolvers<never>();
    const all = bastionTasks({ out, isScreen: false, isSilent: true })([
      { title: "n1", work: () => late.promise },
      {
        title: "n2",
        work: () => {
          setImmediate(() => late.reject(new Error("first in the list")));
          return Promise.reject(new Error("first in time"));
        },
      },
    ]);
    expect(await all.catch(String)).to.equal("Error: first in the list");
  });

  it("show bytes and steps in order; a failed step ends the others", async () => {
    const { out, take } = writtenText();
    const done: string[] = [];
    const send = (say: SayProgress) => {
      say({ bytes: 512_000, total: 2e6 });
      return Promise.resolve("2.0 MB");
    };
    const steps = [
      { title: "writing it", work: send },
      { title: "reading it back", work: () => Promise.reject(new Error("damaged")) },
      { title: "noting it", work: () => Promise.resolve(done.push("noted")) },
    ];
    const all = bastionTasks({ out, isScreen: true })([{ title: "backing up prod", steps }]);
    expect(await all.catch(String)).to.equal("Error: damaged");
    const text = stripVTControlCharacters(take());
    for (const part of ["backing up prod", "0.5/2.0 MB", "writing it: 2.0 MB"]) expect(text).to.contain(part);
    expect(done).to.deep.equal([]);
  });
});
