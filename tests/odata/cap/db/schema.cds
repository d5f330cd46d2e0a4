namespace shop;

type Status : String(12) enum {
  open;
  shipped;
  cancelled;
};

type Address {
  street : String(60);
  city   : String(40);
};

entity Customers {
  key ID      : String(10);
      name    : String(80) not null @title: 'Customer name';
      credit  : Decimal(15, 2);
      address : Address;
      orders  : Association to many Orders
                  on orders.customer = $self;
}

entity Orders {
  key ID        : UUID;
      number    : String(20) @title: 'Order number';
      status    : Status default 'open' @assert.range;
      total     : Decimal(15, 3);
      units     : Integer64;
      weight    : Double;
      urgent    : Boolean;
      placedAt  : DateTime;
      stampedAt : Timestamp;
      shipOn    : Date;
      opensAt   : Time;
      photo     : Binary(100);
      touchedAt : Timestamp @Core.Computed;
      customer  : Association to Customers;
      Items     : Composition of many Items
                    on Items.parent = $self;
}

entity Items {
  key ID       : UUID;
      parent   : Association to Orders;
      position : Integer;
      product  : String(40);
      quantity : Integer;
      price    : Decimal(9, 2);
}

/** A key of two parts, of which one needs quoting. */
entity Stocks {
  key product : String(40);
  key plant   : Integer;
      amount  : Decimal(13, 3);
}

/** The key comes from a counter of the server's. */
entity Tickets {
  key number : String(10) @Core.Computed;
      title  : String(40);
}
