/** Whether the tests on virtual machines that are too long for the server run: `npm run test:blank` sets `KCORE_LONG`. */
export const isLong = process.env["KCORE_LONG"] === "1";
