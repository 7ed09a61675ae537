import { expect } from "chai";
import { Keeper } from "#web/keeper.ts";

class Thing {
  isClosed = false;
  close(): void {
    this.isClosed = true;
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

describe("What several pages use", () => {
  it("is made once, and closed some time after the last of them left", async () => {
    const made: Thing[] = [];
    const keeper = new Keeper(() => {
      const thing = new Thing();
      made.push(thing);
      return Promise.resolve(thing);
    }, 1);
    const [a, b] = await Promise.all([keeper.use("x"), keeper.use("x")]);
    expect(a.value).to.equal(b.value);
    a.done();
    a.done();
    await turn();
    expect(a.value.isClosed).to.equal(false);
    b.done();
    const again = await keeper.use("x");
    expect(again.value).to.equal(a.value);
    again.done();
    await turn();
    expect(a.value.isClosed).to.equal(true);
    await keeper.use("x");
    expect(made).to.have.length(2);
    keeper.closeAll();
    await turn();
    expect(made.every(({ isClosed }) => isClosed)).to.equal(true);
  });

  it("that could not be made is tried again", async () => {
    let tries = 0;
    const keeper = new Keeper(
      () => (++tries === 1 ? Promise.reject(new Error("no")) : Promise.resolve(new Thing())),
      0,
    );
    expect(await keeper.use("x").catch((one: unknown) => one)).to.be.an("error");
    expect((await keeper.use("x")).value).to.be.instanceOf(Thing);
    keeper.closeAll();
  });
});
