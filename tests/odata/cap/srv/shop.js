const cds = require("@sap/cds");

module.exports = class ShopService extends cds.ApplicationService {
  init() {
    let last = 0;
    this.before("CREATE", "Tickets", (request) => {
      last += 1;
      request.data.number = `T${String(last).padStart(9, "0")}`;
    });
    return super.init();
  }
};
