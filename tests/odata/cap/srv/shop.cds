using shop from '../db/schema';

service ShopService @(path: 'shop') {
  entity Customers as projection on shop.Customers;
  entity Orders    as projection on shop.Orders;
  entity Items     as projection on shop.Items;
  entity Stocks    as projection on shop.Stocks;
  entity Tickets   as projection on shop.Tickets;
}
