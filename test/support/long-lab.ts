/** Tests on virtual machines that take longer than the server has for them: run as `npm run test:blank` asks for it. */
export const isLong = process.env["KCORE_LONG"] === "1";
